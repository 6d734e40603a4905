package ldap

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/go-ldap/ldap/v3"
)

// Query selects entries in an LDAP directory.
type Query struct {
	// BaseDN is the entry at which the search starts.
	BaseDN string
	// Scope is `base`, `one` or `sub`. The default is sub.
	Scope string
	// DerefAliases is `never`, `search`, `base` or `always`. The default is always.
	DerefAliases string
	// Filter is a parenthesized filter. An empty filter matches every entry.
	Filter string
	// TimeLimit is in seconds, and PageSize is in entries. 0 means no limit.
	TimeLimit, PageSize int
}

// AnyEntry is a filter that matches every entry.
const AnyEntry = "(objectClass=*)"

// ParseURL parses an RFC 2255 URL from a configuration file,
// `ldap://host:port/base?attribute?scope?filter`. attribute is the attribute that is compared with
// user names. It defaults to `uid`.
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
		return Server{}, Query{}, "", fmt.Errorf(
			"parse LDAP URL %q: must be ldap://host:port/base?attribute?scope?filter", text)
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

// scopes maps a query's scopes to the protocol's values.
func scopes() map[string]int {
	return map[string]int{
		"": ldap.ScopeWholeSubtree, "sub": ldap.ScopeWholeSubtree,
		"one": ldap.ScopeSingleLevel, "base": ldap.ScopeBaseObject,
	}
}

func aliases() map[string]int {
	return map[string]int{"": ldap.DerefAlways, "always": ldap.DerefAlways, "never": ldap.NeverDerefAliases,
		"search": ldap.DerefInSearching, "base": ldap.DerefFindingBaseObj}
}

// Validate returns all errors in the query.
func (q Query) Validate() error {
	var problems []error
	if _, err := ldap.ParseDN(q.BaseDN); err != nil {
		problems = append(problems, fmt.Errorf("base %q is not a distinguished name: %w", q.BaseDN, err))
	}
	if _, ok := scopes()[q.Scope]; !ok {
		problems = append(problems, fmt.Errorf("scope %q must be base, one or sub", q.Scope))
	}
	if _, ok := aliases()[q.DerefAliases]; !ok {
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

// With narrows the query to entries whose attribute has the given value. It escapes the value.
func (q Query) With(attribute, value string) Query {
	filter := q.Filter
	if filter == "" {
		filter = AnyEntry
	}
	q.Filter = fmt.Sprintf("(&%s(%s=%s))", filter, ldap.EscapeFilter(attribute), ldap.EscapeFilter(value))
	return q
}

// Entry narrows the query to the entry with the given distinguished name. The entry must be within
// the query's scope.
func (q Query) Entry(dn string) Query {
	q.BaseDN, q.Scope = dn, "base"
	return q
}

// Contains reports whether an entry with the given distinguished name is within the query's scope.
func (q Query) Contains(dn string) bool {
	base, err := ldap.ParseDN(q.BaseDN)
	if err != nil {
		return false
	}
	name, err := ldap.ParseDN(dn)
	return err == nil && (base.EqualFold(name) || base.AncestorOfFold(name))
}

// SameDN reports whether two distinguished names are equal. It ignores differences in case and
// spelling.
func SameDN(a, b string) bool {
	first, err := ldap.ParseDN(a)
	if err != nil {
		return strings.EqualFold(a, b)
	}
	second, err := ldap.ParseDN(b)
	return err == nil && first.EqualFold(second)
}

// Search returns the entries that match a query, with the given attributes. limit is the maximum
// number of entries. 0 means no limit. If the base does not exist, Search returns no entries.
func (c *Conn) Search(q Query, attributes []string, limit int) ([]*ldap.Entry, error) {
	filter := q.Filter
	if filter == "" {
		filter = AnyEntry
	}
	names := slices.DeleteFunc(slices.Clone(attributes), func(name string) bool { return name == "dn" })
	if len(names) == 0 {
		names = []string{"1.1"} // no attributes (RFC 4511, section 4.5.1.8)
	}
	request := ldap.NewSearchRequest(q.BaseDN, scopes()[q.Scope], aliases()[q.DerefAliases], limit,
		q.TimeLimit, false, filter, names, nil)
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

// IsWrongPassword reports whether a bind error means that the name or password is wrong, or that
// the account is not allowed to log in.
func IsWrongPassword(err error) bool {
	return ldap.IsErrorAnyOf(err, ldap.LDAPResultInvalidCredentials, ldap.LDAPResultUnwillingToPerform,
		ldap.LDAPResultInappropriateAuthentication, ldap.LDAPResultNoSuchObject, ldap.LDAPResultInsufficientAccessRights)
}
