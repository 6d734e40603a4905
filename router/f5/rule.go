package f5

import (
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-platform/slipway/router/claim"
	"github.com/slipway-platform/slipway/router/model"
)

// rule is a policy rule in REST API format, without its name. If several rules match a request, the
// rule with the most conditions applies (strategy best-match).
type rule struct {
	Conditions []condition `json:"conditions"`
	Actions    []action    `json:"actions"`
}

// condition is a policy rule's condition on a request. HTTPHost or HTTPURI selects the part of the
// request to compare with Values. Equals or EndsWith selects the type of comparison.
type condition struct {
	Name            string   `json:"name"`
	Request         bool     `json:"request"`
	HTTPHost        bool     `json:"httpHost,omitempty"`
	Host            bool     `json:"host,omitempty"`
	HTTPURI         bool     `json:"httpUri,omitempty"`
	Path            bool     `json:"path,omitempty"`
	PathSegment     bool     `json:"pathSegment,omitempty"`
	Index           int      `json:"index,omitempty"`
	Equals          bool     `json:"equals,omitempty"`
	EndsWith        bool     `json:"endsWith,omitempty"`
	Not             bool     `json:"not,omitempty"`
	CaseInsensitive bool     `json:"caseInsensitive,omitempty"`
	Values          []string `json:"values"`
}

// action is a policy rule's action on a request: forward to a pool, redirect, or enable or disable
// encryption to pods.
type action struct {
	Name      string `json:"name"`
	Request   bool   `json:"request"`
	Forward   bool   `json:"forward,omitempty"`
	Select    bool   `json:"select,omitempty"`
	Pool      string `json:"pool,omitempty"`
	HTTPReply bool   `json:"httpReply,omitempty"`
	Redirect  bool   `json:"redirect,omitempty"`
	Location  string `json:"location,omitempty"`
	ServerSSL bool   `json:"serverSsl,omitempty"`
	Enable    bool   `json:"enable,omitempty"`
	Disable   bool   `json:"disable,omitempty"`
}

// enable and disable turn encryption to pods on and off.
const enable, disable = "enable", "disable"

// forward returns a rule that forwards a route's requests to a pool. encryption is enable, disable,
// or empty if the virtual server has no server profile.
func forward(alias *model.ServiceAliasConfig, pool, encryption string) rule {
	r := rule{conditions(alias), []action{{Name: "0", Request: true, Forward: true, Select: true, Pool: pool}}}
	if encryption != "" {
		r.Actions = append(r.Actions, action{Name: "1", Request: true, ServerSSL: true, Enable: encryption == enable, Disable: encryption == disable})
	}
	return r
}

// redirect returns a rule that redirects a route's clients to HTTPS.
func redirect(alias *model.ServiceAliasConfig) rule {
	const location = `tcl:https://[getfield [HTTP::host] ":" 1][HTTP::uri]`
	return rule{conditions(alias), []action{{Name: "0", Request: true, HTTPReply: true, Redirect: true, Location: location}}}
}

// conditions returns the conditions for a route's host and path. Paths match by segment: /shop
// matches /shop/cart but not /shopping.
func conditions(alias *model.ServiceAliasConfig) (all []condition) {
	host := condition{HTTPHost: true, Host: true, Equals: true, CaseInsensitive: true, Values: []string{alias.Host}}
	if alias.IsWildcard {
		host.Equals, host.EndsWith, host.Values = false, true, []string{suffix(alias.Host)}
	}
	all = append(all, host)
	if path := strings.Trim(alias.Path, "/"); path != "" {
		for i, segment := range strings.Split(path, "/") {
			all = append(all, condition{HTTPURI: true, PathSegment: true, Index: i + 1, Equals: true, Values: []string{segment}})
		}
	}
	if claim.Exact(alias.Annotations) {
		path := "/" + strings.TrimPrefix(alias.Path, "/")
		all = append(all, condition{HTTPURI: true, Path: true, Equals: true, Values: []string{path}})
	}
	return number(all)
}

// number names conditions by their index.
func number(conditions []condition) []condition {
	for i := range conditions {
		conditions[i].Name, conditions[i].Request = strconv.Itoa(i), true
	}
	return conditions
}

// excludeFromWildcards excludes from each wildcard rule the hosts and domains below the wildcard's
// domain for which the policy has other rules. Without the exclusions, a wildcard rule with more
// path conditions takes precedence over these more specific rules.
func (b *builder) excludeFromWildcards() {
	for _, rules := range []map[string]rule{b.insecure, b.secure} {
		var hosts, domains []string
		for _, r := range rules {
			if host := r.Conditions[0]; host.EndsWith {
				domains = append(domains, host.Values[0])
			} else {
				hosts = append(hosts, host.Values[0])
			}
		}
		if len(domains) == 0 {
			continue
		}
		for name, r := range rules {
			host := r.Conditions[0]
			if !host.EndsWith {
				continue
			}
			for _, except := range []condition{
				{HTTPHost: true, Host: true, Equals: true, Values: below(host.Values[0], hosts)},
				{HTTPHost: true, Host: true, EndsWith: true, Values: below(host.Values[0], domains)},
			} {
				if len(except.Values) > 0 {
					except.Not, except.CaseInsensitive = true, true
					r.Conditions = append(r.Conditions, except)
				}
			}
			r.Conditions = number(r.Conditions)
			rules[name] = r
		}
	}
}

// below returns the names below a domain, sorted.
func below(domain string, names []string) (result []string) {
	for _, name := range names {
		if name != domain && strings.HasSuffix(name, domain) {
			result = append(result, name)
		}
	}
	slices.Sort(result)
	return slices.Compact(result)
}
