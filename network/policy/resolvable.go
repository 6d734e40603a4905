package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"sync"

	networkv1 "github.com/openshift/api/network/v1"

	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/internal/networkplugin"
)

// Resolvable contains the names outside the cluster that pods can resolve. Without a restriction, a
// pod can send data to any domain, because the node's DNS server forwards the pod's queries. An
// Enforcer and its node's DNS server share one Resolvable. A file stores the restrictions, so that
// they are in effect when a new process starts, even if the API server is down.
type Resolvable struct {
	path string

	mutex sync.Mutex
	// damaged means that the file cannot be read, so the names are unknown. Pods can then resolve
	// no names outside the cluster until set is called.
	damaged bool
	current resolvable
	// unsaved means that the file does not contain current.
	unsaved bool
}

// resolvable contains the restrictions.
type resolvable struct {
	// Pods contains this node's pods that can resolve only some names. It maps their addresses to
	// their projects.
	Pods map[netip.Addr]string `json:"pods"`
	// Names contains names and wildcards such as "*.example.com". The value reports whether each
	// project's pods can resolve them. The longest name or wildcard that matches a query applies.
	Names map[string]map[string]bool `json:"names"`
}

// NewResolvable returns a Resolvable with the restrictions in a file.
func NewResolvable(path string) *Resolvable {
	r := &Resolvable{path: path}
	content, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(content, &r.current)
	}
	r.damaged = err != nil && !errors.Is(err, fs.ErrNotExist)
	return r
}

// Allows reports whether a client can resolve a name outside the cluster.
func (r *Resolvable) Allows(client netip.Addr, name string) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	project, exists := r.current.Pods[client]
	allowed, _ := decision(r.current.Names[project], name)
	return !r.damaged && (!exists || allowed)
}

// decision returns the value of the longest name or wildcard that matches a query. exists is false
// if none of them matches.
func decision(names map[string]bool, query string) (allowed, exists bool) {
	rules := matches(query, func(name string) bool { _, exists := names[name]; return exists })
	if len(rules) == 0 {
		return false, false
	}
	return names[rules[0]], true
}

// set replaces the restrictions. They are in effect even if set cannot write the file. In that
// case, the next call writes the file.
func (r *Resolvable) set(desired resolvable) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.damaged && !r.unsaved && reflect.DeepEqual(r.current, desired) {
		return nil
	}
	r.damaged, r.current, r.unsaved = false, desired, true
	content, err := json.Marshal(desired)
	if err == nil {
		err = atomicfile.Write(r.path, content, 0o600)
	}
	if err != nil {
		return fmt.Errorf("store the names that pods can resolve: %w", err)
	}
	r.unsaved = false
	return nil
}

// resolvable returns the names that the pods on this node can resolve.
func (s snapshot) resolvable() (result resolvable) {
	for project, f := range s.firewallsByProject() {
		restricts := func(p *networkv1.EgressNetworkPolicy) bool {
			return p.Annotations[networkplugin.ResolveAnnotation] == networkplugin.ResolveAllowed
		}
		if f.effect == allowAll || !slices.ContainsFunc(f.policies, restricts) {
			continue
		}
		if result.Names == nil {
			result = resolvable{map[netip.Addr]string{}, map[string]map[string]bool{}}
		}
		result.Names[project] = map[string]bool{}
		if f.effect == applyRules {
			result.Names[project] = resolvableNames(f.policies[0].Spec.Egress)
		}
	}
	for _, p := range s.pods {
		if result.Names[p.namespace] != nil && p.local {
			result.Pods[p.address] = p.namespace
		}
	}
	return result
}

// resolvableNames returns the names in a firewall's rules. In a firewall, the first rule that
// matches a name applies. Therefore, a rule has no effect if an earlier rule matches the same or
// more names, and resolvableNames omits it. As a result, of the remaining rules that match a name,
// the first rule is also the longest.
func resolvableNames(rules []networkv1.EgressNetworkPolicyRule) map[string]bool {
	names := map[string]bool{}
	for _, rule := range rules {
		name := canonicalName(rule.To.DNSName)
		if _, exists := decision(names, name); name != "" && !exists {
			names[name] = rule.Type == networkv1.EgressNetworkPolicyRuleAllow
		}
	}
	return names
}
