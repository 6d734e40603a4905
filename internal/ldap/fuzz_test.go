package ldap

import (
	"testing"

	ber "github.com/go-asn1-ber/asn1-ber"
	"github.com/go-ldap/ldap/v3"
)

// FuzzFilter checks that every user name becomes exactly one value in a filter.
func FuzzFilter(f *testing.F) {
	for _, seed := range []string{"ann", "*", "a)(uid=*", "\\2a", "\x00", "a*b", "ann))(|(uid=root", "ä", "\xff", ""} {
		f.Add("uid", seed)
	}
	f.Fuzz(func(t *testing.T, attribute, value string) {
		q := Query{Filter: "(objectClass=person)"}.With("uid", value)
		packet, err := ldap.CompileFilter(q.Filter)
		if err != nil {
			t.Fatalf("the filter of %q is %q: %v", value, q.Filter, err)
		}
		if packet.Tag != ldap.FilterAnd || len(packet.Children) != 2 {
			t.Fatalf("the filter of %q is %q", value, q.Filter)
		}
		child := packet.Children[1]
		if value == "" && child.Tag != ldap.FilterEqualityMatch {
			return
		}
		if child.Tag != ldap.FilterEqualityMatch || text(child.Children[0]) != "uid" || text(child.Children[1]) != value {
			t.Errorf("the filter of %q is %q", value, q.Filter)
		}
		// Ignore the error, because attribute comes from the configuration.
		_, _ = ldap.CompileFilter(Query{}.With(attribute, value).Filter)
	})
}

func text(packet *ber.Packet) string { return packet.Data.String() }

// FuzzURL checks that a query parsed from a URL is valid.
func FuzzURL(f *testing.F) {
	for _, seed := range []string{"ldap://h/dc=a?uid?sub?(a=b)", "ldaps://[::1]:1/", "ldap:///", "ldap://h/%zz", "ldap://h/dc=a????", "ldap://h/a?%28"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		server, query, attribute, err := ParseURL(address)
		if err == nil && (query.Validate() != nil || server.Address == "") {
			t.Errorf("%q is %+v, %+v, %q", address, server, query, attribute)
		}
		query.Contains(address)
		SameDN(address, query.BaseDN)
	})
}
