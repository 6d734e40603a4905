package groupsync

import (
	"fmt"

	goldap "github.com/go-ldap/ldap/v3"
	legacyv1 "github.com/openshift/api/legacyconfig/v1"

	"github.com/slipway-platform/slipway/internal/ldap"
)

// findOne returns the entry whose attribute has the given value. If attribute is dn, value is the
// entry's distinguished name. findOne returns nil if no entry matches, and an error if several
// match.
func findOne(conn *ldap.Conn, q ldap.Query, attribute, value string, attributes []string) (*goldap.Entry, error) {
	if attribute == "dn" {
		q = q.Entry(value)
	} else {
		q = q.With(attribute, value)
	}
	entries, err := conn.Search(q, attributes, 2)
	switch {
	case err != nil:
		return nil, err
	case len(entries) > 1:
		return nil, fmt.Errorf("several entries have the %s %q", attribute, value)
	case len(entries) == 0:
		return nil, nil
	}
	return entries[0], nil
}

// rfc2307 reads groups that list their members.
type rfc2307 struct {
	conn  *ldap.Conn
	c     *legacyv1.RFC2307Config
	names map[string]string // cluster names, keyed by group UID
	users map[string]string // names of the users read so far, keyed by UID
}

// UIDs returns the UIDs of all groups.
func (r *rfc2307) UIDs() ([]string, error) {
	entries, err := r.conn.Search(query(r.c.AllGroupsQuery), []string{r.c.GroupUIDAttribute}, 0)
	if err != nil {
		return nil, err
	}
	var uids []string
	for _, entry := range entries {
		if uid := ldap.Value(entry, []string{r.c.GroupUIDAttribute}); uid != "" {
			uids = append(uids, uid)
		}
	}
	return sorted(uids), nil
}

func (r *rfc2307) entry(uid string) (*goldap.Entry, error) {
	all := query(r.c.AllGroupsQuery)
	if r.c.GroupUIDAttribute == "dn" && !all.Contains(uid) {
		return nil, fmt.Errorf("group %q is outside the base DN %q: %w", uid, all.BaseDN, ErrNoGroup)
	}
	attributes := append([]string{r.c.GroupUIDAttribute}, r.c.GroupNameAttributes...)
	entry, err := findOne(r.conn, all, r.c.GroupUIDAttribute, uid, append(attributes, r.c.GroupMembershipAttributes...))
	if err == nil && entry == nil {
		err = fmt.Errorf("group %q: %w", uid, ErrNoGroup)
	}
	return entry, err
}

// name returns the cluster name of the group with the given UID.
func (r *rfc2307) name(uid string) (string, error) {
	entry, err := r.entry(uid)
	if err != nil {
		return "", err
	}
	return r.nameOf(uid, entry)
}

func (r *rfc2307) nameOf(uid string, entry *goldap.Entry) (string, error) {
	if name := r.names[uid]; name != "" {
		return name, nil
	}
	if name := ldap.Value(entry, r.c.GroupNameAttributes); name != "" {
		return name, nil
	}
	return "", fmt.Errorf("group %q lacks the name attributes %v", uid, r.c.GroupNameAttributes)
}

// Group returns a group with its members' names.
func (r *rfc2307) Group(uid string) (Group, error) {
	entry, err := r.entry(uid)
	if err != nil {
		return Group{}, err
	}
	group := Group{UID: uid}
	if group.Name, err = r.nameOf(uid, entry); err != nil {
		return Group{}, err
	}
	for _, attribute := range r.c.GroupMembershipAttributes {
		for _, member := range ldap.Values(entry, []string{attribute}) {
			name, err := r.user(member)
			if err != nil {
				return Group{}, fmt.Errorf("group %q: %w", uid, err)
			}
			if name != "" {
				group.Users = append(group.Users, name)
			}
		}
	}
	group.Users = sorted(group.Users)
	return group, nil
}

// user returns a member's name. If the directory does not contain the member and the configuration
// tolerates missing members, the name is empty.
func (r *rfc2307) user(uid string) (string, error) {
	if name, ok := r.users[uid]; ok {
		return name, nil
	}
	all := query(r.c.AllUsersQuery)
	if r.c.UserUIDAttribute == "dn" && !all.Contains(uid) {
		if r.c.TolerateMemberOutOfScopeErrors {
			return "", nil
		}
		return "", fmt.Errorf("member %q is outside the base DN %q; to ignore it, set tolerateMemberOutOfScopeErrors", uid, all.BaseDN)
	}
	entry, err := findOne(r.conn, all, r.c.UserUIDAttribute, uid, r.c.UserNameAttributes)
	if err != nil {
		return "", err
	}
	if entry == nil {
		if r.c.TolerateMemberNotFoundErrors {
			return "", nil
		}
		return "", fmt.Errorf("member %q does not exist; to ignore it, set tolerateMemberNotFoundErrors", uid)
	}
	name := ldap.Value(entry, r.c.UserNameAttributes)
	if name == "" {
		return "", fmt.Errorf("member %q lacks the name attributes %v", uid, r.c.UserNameAttributes)
	}
	r.users[uid] = name
	return name, nil
}

// activeDirectory reads users that list their groups.
type activeDirectory struct {
	conn       *ldap.Conn
	users      ldap.Query
	userNames  []string
	membership []string
	name       func(uid string) (string, error)
}

// UIDs returns the UIDs of the groups in the users' membership attributes.
func (a *activeDirectory) UIDs() ([]string, error) {
	entries, err := a.conn.Search(a.users, a.membership, 0)
	if err != nil {
		return nil, err
	}
	var uids []string
	for _, entry := range entries {
		for _, attribute := range a.membership {
			uids = append(uids, ldap.Values(entry, []string{attribute})...)
		}
	}
	return sorted(uids), nil
}

// Group returns a group with its users, or ErrNoGroup if no user lists the group.
func (a *activeDirectory) Group(uid string) (group Group, err error) {
	group.UID = uid
	for _, attribute := range a.membership {
		entries, err := a.conn.Search(a.users.With(attribute, uid), a.userNames, 0)
		if err != nil {
			return Group{}, err
		}
		for _, entry := range entries {
			name := ldap.Value(entry, a.userNames)
			if name == "" {
				return Group{}, fmt.Errorf("user %q lacks the name attributes %v", entry.DN, a.userNames)
			}
			group.Users = append(group.Users, name)
		}
	}
	if len(group.Users) == 0 {
		return Group{}, fmt.Errorf("group %q: %w", uid, ErrNoGroup)
	}
	group.Users = sorted(group.Users)
	group.Name, err = a.name(uid)
	return group, err
}
