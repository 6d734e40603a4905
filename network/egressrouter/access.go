package egressrouter

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
)

// Access determines which servers clients can reach through the HTTP proxy. The first matching rule
// applies. If no rule matches, access to the server is denied.
type Access []rule

// rule matches all servers, the servers in a network, or the servers with a name.
type rule struct {
	deny       bool
	all        bool
	network    netip.Prefix
	name       string // in lower case
	subdomains bool   // names below name match too
}

// ParseAccess parses EGRESS_HTTP_PROXY_DESTINATION. Each line is an IP address, a network, a host
// name, or *.<domain>, which matches the domain and its subdomains. A leading ! denies access. The
// last line can be *, which matches all servers. Blank lines and lines that begin with # are
// ignored.
func ParseAccess(text string) (Access, error) {
	list := lines(text)
	if len(list) == 0 {
		return nil, fmt.Errorf("%s is empty; list the servers that clients reach, or * for all", httpDestinationVariable)
	}
	var access Access
	var errs []error
	for i, fields := range list {
		r, ok := parseRule(strings.Join(fields, " "))
		switch {
		case !ok:
			errs = append(errs, lineError(httpDestinationVariable, fields, "must be an IP address, a network, a host name, *.<domain> or *, after an optional !"))
		case r.all && i != len(list)-1:
			errs = append(errs, lineError(httpDestinationVariable, fields, "must be the last line"))
		}
		access = append(access, r)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return access, nil
}

func parseRule(text string) (r rule, ok bool) {
	text, r.deny = strings.CutPrefix(text, "!")
	if text == "*" {
		r.all = true
		return r, true
	}
	if network, err := netip.ParsePrefix(text); err == nil {
		r.network = network.Masked()
		return r, !network.Addr().Is4In6()
	}
	if address, err := netip.ParseAddr(text); err == nil {
		r.network = netip.PrefixFrom(address, address.BitLen())
		return r, address.Zone() == "" && !address.Is4In6()
	}
	text, r.subdomains = strings.CutPrefix(text, "*.")
	r.name = canonical(text)
	return r, isName(r.name)
}

// allows reports whether the rules allow connections to a server at one of its addresses. host is
// the name that the client used, or the address if the client used an address. Rules with names do
// not allow link-local addresses, because a cloud's metadata service, which trusts every client,
// has a link-local address.
func (a Access) allows(host string, address netip.Addr) bool {
	host = canonical(host)
	for _, r := range a {
		if !r.deny && !r.network.IsValid() && address.IsLinkLocalUnicast() {
			continue
		}
		if r.all || r.network.IsValid() && r.network.Contains(address) || r.name != "" && r.hasName(host) {
			return !r.deny
		}
	}
	return false
}

func (r rule) hasName(host string) bool {
	return host == r.name || r.subdomains && strings.HasSuffix(host, "."+r.name)
}

func canonical(name string) string { return strings.TrimSuffix(strings.ToLower(name), ".") }

// label matches a label of a DNS name. It accepts underscores: they are invalid in host names, but
// some host names contain them.
var label = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$`)

// isName reports whether a canonical name is a DNS name. The last label must not be a number;
// otherwise, a mistyped address would be accepted as a name.
func isName(name string) bool {
	parts := strings.Split(name, ".")
	for _, part := range parts {
		if !label.MatchString(part) {
			return false
		}
	}
	return len(name) <= 253 && strings.Trim(parts[len(parts)-1], "0123456789") != ""
}
