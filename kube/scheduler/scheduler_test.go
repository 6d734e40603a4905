package scheduler

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/slipway-platform/slipway/kube/scheduler/policy"
)

// documentedDefault is the guide's default Policy.
const documentedDefault = `
kind: Policy
apiVersion: v1
predicates:
- name: NoVolumeZoneConflict
- name: MaxEBSVolumeCount
- name: MaxGCEPDVolumeCount
- name: MaxAzureDiskVolumeCount
- name: MatchInterPodAffinity
- name: NoDiskConflict
- name: GeneralPredicates
- name: PodToleratesNodeTaints
- name: Region
  argument: {serviceAffinity: {labels: [region]}}
priorities:
- {name: SelectorSpreadPriority, weight: 1}
- {name: InterPodAffinityPriority, weight: 1}
- {name: LeastRequestedPriority, weight: 1}
- {name: BalancedResourceAllocation, weight: 1}
- {name: NodePreferAvoidPodsPriority, weight: 10000}
- {name: NodeAffinityPriority, weight: 1}
- {name: TaintTolerationPriority, weight: 1}
- name: Zone
  weight: 2
  argument: {serviceAntiAffinity: {label: zone}}
`

// TestPoliciesPlacePods evaluates the guide's sample policies (sections 16.2.4 and 16.2.8) on nodes
// with the corresponding topologies.
func TestPoliciesPlacePods(t *testing.T) {
	topology := []*corev1.Node{
		node("a1", "region=r1", "zone=z1", "rack=s1"), node("a2", "region=r1", "zone=z1", "rack=s2"),
		node("a3", "region=r1", "zone=z2", "rack=s3"), node("b1", "region=r2", "zone=z3", "rack=s4"), node("c1"),
	}
	buildings := []*corev1.Node{
		node("n1", "city=c1", "building=b1", "room=1"), node("n2", "city=c1", "building=b1", "room=2"),
		node("n3", "city=c1", "building=b2", "room=3"), node("n4", "city=c2", "building=b3", "room=4"),
	}
	for name, tt := range map[string]struct {
		policy        string
		nodes         []*corev1.Node
		pods          []*corev1.Pod
		selector      map[string]string
		fitting, best string
	}{
		"default policy, first pod": {
			policy: documentedDefault, nodes: topology,
			fitting: "a1 a2 a3 b1 c1", best: "a1 a2 a3 b1",
		},
		"default policy, second pod": {
			policy: documentedDefault, nodes: topology, pods: []*corev1.Pod{pod("web-1", "a1", "app=web")},
			fitting: "a1 a2 a3", best: "a3",
		},
		"default policy, node selector": {
			policy: documentedDefault, nodes: topology, pods: []*corev1.Pod{pod("web-1", "a1", "app=web")},
			selector: map[string]string{"region": "r2"},
			fitting:  "b1", best: "b1",
		},
		"default policy, pods of another service": {
			policy: documentedDefault, nodes: topology, pods: []*corev1.Pod{pod("db-1", "b1", "app=db")},
			fitting: "a1 a2 a3 b1 c1", best: "a1 a2 a3",
		},
		"region and zone affinity, rack anti-affinity": {
			policy: `{kind: Policy, version: v1,
				predicates: [{name: RegionZoneAffinity, argument: {serviceAffinity: {labels: [region, zone]}}}],
				priorities: [{name: RackSpread, weight: 1, argument: {serviceAntiAffinity: {label: rack}}}]}`,
			nodes: topology, pods: []*corev1.Pod{pod("web-1", "a1", "app=web")},
			fitting: "a1 a2", best: "a2",
		},
		"city affinity, building and room anti-affinity": {
			policy: `{kind: Policy, version: v1,
				predicates: [{name: CityAffinity, argument: {serviceAffinity: {labels: [city]}}}],
				priorities: [
					{name: BuildingSpread, weight: 1, argument: {serviceAntiAffinity: {label: building}}},
					{name: RoomSpread, weight: 1, argument: {serviceAntiAffinity: {label: [room]}}}]}`,
			nodes: buildings, pods: []*corev1.Pod{pod("web-1", "n1", "app=web")},
			fitting: "n1 n2 n3", best: "n3",
		},
		"region required, zone preferred": {
			policy: `{kind: Policy, version: v1,
				predicates: [{name: RequireRegion, argument: {labelsPresence: {labels: [region], presence: true}}}],
				priorities: [{name: ZonePreferred, weight: 1, argument: {labelPreference: {label: zone, presence: true}}}]}`,
			nodes:   append([]*corev1.Node{node("d1", "region=r3")}, topology...),
			fitting: "a1 a2 a3 b1 d1", best: "a1 a2 a3 b1",
		},
		"static and configurable rules": {
			policy: `{kind: Policy, version: v1,
				predicates: [
					{name: RegionAffinity, argument: {serviceAffinity: {labels: [region]}}},
					{name: RequireRegion, argument: {labelsPresence: {labels: [region], presence: true}}},
					{name: BuildingNodesAvoid, argument: {labelsPresence: {labels: [building], presence: false}}},
					{name: PodFitsPorts}, {name: MatchNodeSelector}],
				priorities: [
					{name: ZoneSpread, weight: 2, argument: {serviceAntiAffinity: {label: zone}}},
					{name: ZonePreferred, weight: 1, argument: {labelPreference: {label: zone, presence: true}}},
					{name: ServiceSpreadingPriority, weight: 1}]}`,
			nodes: append([]*corev1.Node{node("e1", "region=r1", "building=b1")}, topology...),
			pods:  []*corev1.Pod{pod("web-1", "a1", "app=web")},
			// e1 has the label "building". b1 is in a different region.
			fitting: "a1 a2 a3", best: "a3",
		},
	} {
		t.Run(name, func(t *testing.T) {
			next := pod("web-2", "", "app=web")
			next.Spec.NodeSelector = tt.selector
			c := cluster{tt.nodes, tt.pods, []runtime.Object{service()}}
			v := evaluate(t, Settings{Policy: load(t, tt.policy)}, c, next)
			if v.fitting() != tt.fitting || v.best() != tt.best {
				t.Errorf("fitting %q, best %q, want %q and %q; reasons %v, scores %v", v.fitting(), v.best(), tt.fitting, tt.best, v.reasons, v.scores)
			}
		})
	}
}

// TestPrioritiesScoreNodes evaluates individual priorities.
func TestPrioritiesScoreNodes(t *testing.T) {
	busy, idle, avoiding := node("busy"), node("idle"), node("avoiding")
	avoiding.Annotations = map[string]string{corev1.PreferAvoidPodsAnnotationKey: `{"preferAvoidPods": [
		{"podSignature": {"podController": {"apiVersion": "v1", "kind": "ReplicationController", "name": "web", "uid": "rc1"}}}]}`}
	large := pod("large", "busy")
	large.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("3"), "memory": resource.MustParse("3Gi")}
	peer := pod("web-1", "idle", "app=web")
	busy.Status.Images = []corev1.ContainerImage{{Names: []string{"example.com/web:latest"}, SizeBytes: 1 << 30}}
	c := cluster{[]*corev1.Node{busy, idle, avoiding}, []*corev1.Pod{large, peer}, []runtime.Object{
		service(), &corev1.ReplicationController{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
			Spec:       corev1.ReplicationControllerSpec{Selector: map[string]string{"app": "web"}},
		},
	}}
	for name, want := range map[string]string{
		"MostRequestedPriority":       "busy",
		"LeastRequestedPriority":      "avoiding", // idle runs a small pod
		"ImageLocalityPriority":       "busy",
		"EqualPriority":               "avoiding busy idle",
		"NodePreferAvoidPodsPriority": "busy idle",
		"SelectorSpreadPriority":      "avoiding busy",
		"ServiceSpreadingPriority":    "avoiding busy",
		"InterPodAffinityPriority":    "avoiding busy idle",
		"NodeAffinityPriority":        "avoiding busy idle",
		"TaintTolerationPriority":     "avoiding busy idle",
	} {
		t.Run(name, func(t *testing.T) {
			next := pod("web-2", "", "app=web")
			next.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "ReplicationController", Name: "web", UID: "rc1", Controller: new(true),
			}}
			rules := &policy.Policy{Predicates: []policy.Predicate{}, Priorities: []policy.Priority{{Name: name, Weight: 1}}}
			v := evaluate(t, Settings{Policy: rules}, c, next)
			if v.best() != want {
				t.Errorf("best %q, want %q; scores %v", v.best(), want, v.scores)
			}
		})
	}
}

// TestBalancedResourceAllocationEvensUse schedules a pod that requests memory onto a node whose CPU
// is in use.
func TestBalancedResourceAllocationEvensUse(t *testing.T) {
	first, next := pod("first", "busy"), pod("next", "")
	first.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("3"), "memory": resource.MustParse("1Mi")}
	next.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1m"), "memory": resource.MustParse("3Gi")}
	rules := load(t, `{predicates: [], priorities: [{name: BalancedResourceAllocation, weight: 1}]}`)
	c := cluster{nodes: []*corev1.Node{node("busy"), node("idle")}, pods: []*corev1.Pod{first}}
	if v := evaluate(t, Settings{Policy: rules}, c, next); v.best() != "busy" {
		t.Errorf("best %q, want busy; scores %v", v.best(), v.scores)
	}
}

// TestEachNameHasRule checks that no valid name is ignored.
func TestEachNameHasRule(t *testing.T) {
	if got, want := slices.Sorted(maps.Keys(predicates())), policy.PredicateNames(); !slices.Equal(got, want) {
		t.Errorf("predicates %v, want %v", got, want)
	}
	for _, name := range policy.PriorityNames() {
		if _, ok := upstreamPriorities()[name]; !ok && !slices.Contains([]string{
			"MostRequestedPriority", "NodePreferAvoidPodsPriority", "SelectorSpreadPriority", "ServiceSpreadingPriority",
		}, name) {
			t.Errorf("no plugin for %s", name)
		}
	}
}

// TestPredicatesAreReplaced checks that a predicate is not applied if the Policy does not contain
// it.
func TestPredicatesAreReplaced(t *testing.T) {
	small, tainted := node("small"), node("tainted")
	small.Status.Allocatable["cpu"] = resource.MustParse("1")
	tainted.Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
	next := pod("large", "")
	next.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("2")}
	for name, tt := range map[string]struct{ policy, want string }{
		"none":                {`{predicates: []}`, "large small"},
		"default":             {`{}`, "large"},
		"resources":           {`{predicates: [{name: PodFitsResources}]}`, "large"},
		"general":             {`{predicates: [{name: GeneralPredicates}]}`, "large"},
		"unrelated predicate": {`{predicates: [{name: HostName}]}`, "large small"},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster{nodes: []*corev1.Node{small, tainted, node("large")}}
			if v := evaluate(t, Settings{Policy: load(t, tt.policy)}, c, next); v.fitting() != tt.want {
				t.Errorf("fitting %q, want %q; %v", v.fitting(), tt.want, v.reasons)
			}
		})
	}
}

// TestAllReasonsAreReported checks that alwaysCheckAllPredicates changes only the reasons.
func TestAllReasonsAreReported(t *testing.T) {
	small := node("small")
	small.Status.Allocatable["cpu"] = resource.MustParse("1")
	next := pod("large", "")
	next.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("2")}
	const rules = `predicates: [{name: PodFitsResources}, {name: InRegion, argument: {labelsPresence: {labels: [region], presence: true}}}]`
	for name, tt := range map[string]struct{ policy, want string }{
		"first reason": {`{` + rules + `}`, "Insufficient cpu"},
		"all reasons":  {`{alwaysCheckAllPredicates: true, ` + rules + `}`, "node(s) lack the label region, Insufficient cpu"},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster{nodes: []*corev1.Node{small, node("large", "region=r1")}}
			v := evaluate(t, Settings{Policy: load(t, tt.policy)}, c, next)
			if v.fitting() != "large" || v.reasons["small"] != tt.want {
				t.Errorf("fitting %q, reasons %q, want large and %q", v.fitting(), v.reasons["small"], tt.want)
			}
		})
	}
}

// TestPreemptionIsDisabled checks that disablePreemption removes upstream's plugin from each
// profile.
func TestPreemptionIsDisabled(t *testing.T) {
	for name, settings := range map[string]Settings{
		"default":       {},
		"policy":        {Policy: &policy.Policy{}},
		"configuration": {Configuration: []byte("profiles: [{schedulerName: default-scheduler}]")},
	} {
		t.Run(name, func(t *testing.T) {
			for _, disabled := range []bool{false, true} {
				settings.DisablePreemption = disabled
				plugins := start(t, settings, cluster{}).ListPlugins().PostFilter.Enabled
				enabled := slices.ContainsFunc(plugins, func(p schedulerconfig.Plugin) bool { return p.Name == preemption })
				if enabled == disabled {
					t.Errorf("disabled %v: plugins %v", disabled, plugins)
				}
			}
		})
	}
}
