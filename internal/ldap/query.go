package ldap

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/go-ldap/ldap/v3"
)

// Query says which entries are looked for.
type Query struct {
	// BaseDN is where the search begins.
	BaseDN string
	// Scope is `base`, `one` or `sub`; empty means sub.
	Scope string
	// DerefAliases is `never`, `search`, `base` or `always`; empty means always.
	DerefAliases string
	// Filter is a filter in parentheses; empty means each entry.
	Filter string
	// TimeLimit is in seconds and PageSize in entries; 0 means none.
	TimeLimit, PageSize int
}

// AnyEntry is a filter that each entry passes.
const AnyEntry = "(objectClass=*)"

// ParseURL reads an RFC 2255 URL, `ldap://host:port/base?attribute?scope?filter`, as it stands in a configuration file. attribute is what
// a user name is compared with, `uid` by default.
func ParseURL(text string) (server Server, query Query, attribute string, err error) {
	scheme, address, u, err := ParseAddress(text)
	if err != nil {
		return Server{}, Query{}, "", err
	}
	query = Query{BaseDN: strings.TrimPrefix(u.Path, "/"), Scope: "sub", Filter: AnyEntry}
	attribute = "uid"
	parts := strings.Split(u.RawQuery, "?")
	if u.RawQuery == "" {
		parts = nil
	}
	if len(parts) > 3 {
		return Server{}, Query{}, "", fmt.Errorf("parse LDAP URL %q: must be ldap://host:port/base?attribute?scope?filter", text)
	}
	targets := []*string{&attribute, &query.Scope, &query.Filter}
	for i, part := range parts {
		value, err := url.PathUnescape(part)
		if err != nil {
			return Server{}, Query{}, "", fmt.Errorf("parse LDAP URL %q: %w", text, err)
		}
		if value != "" {
			*targets[i] = value
		}
	}
	attribute, _, _ = strings.Cut(attribute, ",")
	if err := query.Validate(); err != nil {
		return Server{}, Query{}, "", fmt.Errorf("parse LDAP URL %q: %w", text, err)
	}
	return Server{Scheme: scheme, Address: address}, query, attribute, nil
}

// The words of a query by what the protocol calls them.
func scopes() map[string]int {
	return map[string]int{"": ldap.ScopeWholeSubtree, "sub": ldap.ScopeWholeSubtree, "one": ldap.ScopeSingleLevel, "base": ldap.ScopeBaseObject}
}

func aliases() map[string]int {
	return map[string]int{"": ldap.DerefAlways, "always": ldap.DerefAlways, "never": ldap.NeverDerefAliases,
		"search": ldap.DerefInSearching, "base": ldap.DerefFindingBaseObj}
}

// Validate says everything that is wrong with the query.
func (q Query) Validate() error {
	var problems []error
	if _, err := ldap.ParseDN(q.BaseDN); err != nil {
		problems = append(problems, fmt.Errorf("base %q is no distinguished name: %w", q.BaseDN, err))
	}
	if _, known := scopes()[q.Scope]; !known {
		problems = append(problems, fmt.Errorf("scope %q must be base, one or sub", q.Scope))
	}
	if _, known := aliases()[q.DerefAliases]; !known {
		problems = append(problems, fmt.Errorf("derefAliases %q must be never, search, base or always", q.DerefAliases))
	}
	if q.Filter != "" {
		if _, err := ldap.CompileFilter(q.Filter); err != nil {
			problems = append(problems, fmt.Errorf("filter %q: %w", q.Filter, err))
		}
	}
	if q.TimeLimit < 0 || q.PageSize < 0 {
		problems = append(problems, errors.New("timeout and pageSize must not be negative"))
	}
	return errors.Join(problems...)
}

// With narrows the query to entries whose attribute has a value, whatever characters that has.
func (q Query) With(attribute, value string) Query {
	filter := q.Filter
	if filter == "" {
		filter = AnyEntry
	}
	q.Filter = fmt.Sprintf("(&%s(%s=%s))", filter, ldap.EscapeFilter(attribute), ldap.EscapeFilter(value))
	return q
}

// Entry narrows the query to the entry of a name, as far as that lies where the query looks.
func (q Query) Entry(dn string) Query {
	q.BaseDN, q.Scope = dn, "base"
	return q
}

// Contains tells whether an entry of a name lies where the query looks.
func (q Query) Contains(dn string) bool {
	base, err := ldap.ParseDN(q.BaseDN)
	if err != nil {
		return false
	}
	name, err := ldap.ParseDN(dn)
	return err == nil && (base.EqualFold(name) || base.AncestorOfFold(name))
}

// SameDN compares two names without regard to case and spelling.
func SameDN(a, b string) bool {
	first, err := ldap.ParseDN(a)
	if err != nil {
		return strings.EqualFold(a, b)
	}
	second, err := ldap.ParseDN(b)
	return err == nil && first.EqualFold(second)
}

// Search gives the entries of a query with some of their attributes. limit is the most that are wanted, 0 for all. A base that does not
// exist has no entries.
func (c *Conn) Search(q Query, attributes []string, limit int) ([]*ldap.Entry, error) {
	filter := q.Filter
	if filter == "" {
		filter = AnyEntry
	}
	wanted := slices.DeleteFunc(slices.Clone(attributes), func(name string) bool { return name == "dn" })
	if len(wanted) == 0 {
		wanted = []string{"1.1"} // no attributes (RFC 4511, section 4.5.1.8)
	}
	request := ldap.NewSearchRequest(q.BaseDN, scopes()[q.Scope], aliases()[q.DerefAliases], limit, q.TimeLimit, false, filter, wanted, nil)
	var result *ldap.SearchResult
	var err error
	if q.PageSize > 0 && limit == 0 {
		result, err = c.SearchWithPaging(request, uint32(q.PageSize))
	} else {
		result, err = c.Conn.Search(request)
	}
	switch {
	case ldap.IsErrorWithCode(err, ldap.LDAPResultNoSuchObject):
		return nil, nil
	case ldap.IsErrorWithCode(err, ldap.LDAPResultSizeLimitExceeded) && limit > 0 && result != nil:
		return result.Entries, nil
	case err != nil:
		return nil, fmt.Errorf("search LDAP server below %q: %w", q.BaseDN, err)
	}
	return result.Entries, nil
}

// IsWrongPassword tells whether an error of a bind is the answer to a wrong name or password, or to an account that may not log in.
func IsWrongPassword(err error) bool {
	return ldap.IsErrorAnyOf(err, ldap.LDAPResultInvalidCredentials, ldap.LDAPResultUnwillingToPerform,
		ldap.LDAPResultInappropriateAuthentication, ldap.LDAPResultNoSuchObject, ldap.LDAPResultInsufficientAccessRights)
}
