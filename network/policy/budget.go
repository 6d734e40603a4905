package policy

import (
	"cmp"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The budget for one user's projects is minWork, plus workPerPod for each pod and project in the
// cluster. It depends on the size of the cluster, because every selector might have to be compared
// with all pods and projects. The unit of work is a rule, an element, or a comparison of a selector
// with labels.
const (
	minWork    = 20_000
	workPerPod = 100
)

// budget limits the work for one user's projects.
type budget struct {
	remaining int
	// sets contains the names of the sets that have already been counted.
	sets map[string]bool
}

func (b *budget) spend(work int) { b.remaining -= work }

func (b *budget) exhausted() bool { return b.remaining < 0 }

// spendOnSet counts the work for a set the first time that a rule uses the set.
func (b *budget) spendOnSet(name string, work int) {
	if !b.sets[name] {
		b.sets[name] = true
		b.spend(work)
	}
}

// budgets returns a budget for each project owner.
func (s snapshot) budgets(projects []project) map[string]*budget {
	result := map[string]*budget{}
	for _, p := range projects {
		result[p.owner] = &budget{remaining: minWork + workPerPod*(len(s.pods)+len(s.namespaces)), sets: map[string]bool{}}
	}
	return result
}

// project is a project with policies.
type project struct {
	namespace string
	// owner is the user who requested the project. A project without a requester is its own owner.
	owner    string
	policies []*networkingv1.NetworkPolicy
	size     int
}

// projects returns the projects with policies, in ascending order of size. In this order, a user's
// large project does not use up the budget of the user's other projects.
func (s snapshot) projects() []project {
	byNamespace := map[string]*project{}
	for _, policy := range s.policies {
		p := byNamespace[policy.Namespace]
		if p == nil {
			p = &project{namespace: policy.Namespace, owner: cmp.Or(s.requesters[policy.Namespace], "project "+policy.Namespace)}
			byNamespace[policy.Namespace] = p
		}
		p.policies = append(p.policies, policy)
		p.size += size(policy)
	}
	var result []project
	for _, p := range byNamespace {
		slices.SortFunc(p.policies, func(a, b *networkingv1.NetworkPolicy) int { return cmp.Compare(a.Name, b.Name) })
		result = append(result, *p)
	}
	slices.SortFunc(result, func(a, b project) int {
		return cmp.Or(cmp.Compare(a.size, b.size), cmp.Compare(a.namespace, b.namespace))
	})
	return result
}

// size returns the number of a policy's rules, peers and ports, plus one for the policy itself.
func size(policy *networkingv1.NetworkPolicy) (count int) {
	for _, rule := range policy.Spec.Ingress {
		count += 1 + len(rule.From) + len(rule.Ports)
	}
	for _, rule := range policy.Spec.Egress {
		count += 1 + len(rule.To) + len(rule.Ports)
	}
	return count + 1
}

// values returns the number of labels, keys and values in a selector.
func values(selector *metav1.LabelSelector) int {
	if selector == nil {
		return 0
	}
	count := len(selector.MatchLabels)
	for _, expression := range selector.MatchExpressions {
		count += 1 + len(expression.Values)
	}
	return count
}

// valuesPerComparison is the number of selector values that take as long to compare as the fixed
// part of the comparison with an object.
const valuesPerComparison = 8

// comparisons returns the work needed to compare a selector with count objects.
func comparisons(selector *metav1.LabelSelector, count int) int {
	return count * (1 + values(selector)/valuesPerComparison)
}
