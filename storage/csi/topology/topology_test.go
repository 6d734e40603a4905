package topology

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
)

// randomNodes creates random nodes. Most nodes have the same keys, some have other keys, and some
// lack a label.
func randomNodes(random *rand.Rand) []Node {
	var nodes []Node
	for i := range 1 + random.IntN(12) {
		node := Node{Name: fmt.Sprint("node-", i), Keys: []string{"zone", "rack"}, Labels: map[string]string{
			"zone": fmt.Sprint("z", random.IntN(3)), "rack": fmt.Sprint("r", random.IntN(3)), "region": "eu",
		}}
		switch random.IntN(6) {
		case 0:
			node.Keys = []string{"region"}
		case 1:
			delete(node.Labels, "rack")
		case 2:
			node.Keys = nil
		}
		nodes = append(nodes, node)
	}
	return nodes
}

func allowed(random *rand.Rand) []corev1.TopologySelectorTerm {
	if random.IntN(2) == 0 {
		return nil
	}
	return []corev1.TopologySelectorTerm{
		{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "zone", Values: []string{"z1", "z0"}}, {Key: "rack", Values: []string{"r0", "r1", "r2"}}}},
		{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "zone", Values: []string{"z2"}}, {Key: "rack", Values: []string{"r2"}}}},
	}
}

// cases calls check with random inputs. The subtest's name contains the seed.
func cases(t *testing.T, check func(t *testing.T, in Input, random *rand.Rand)) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 0))
		in := Input{Nodes: randomNodes(random), Allowed: allowed(random), Claim: fmt.Sprint("data-web-", random.IntN(20)), UID: fmt.Sprint(seed)}
		in.Spread, in.Strict = random.IntN(2) == 0, random.IntN(4) == 0
		if random.IntN(2) == 0 {
			in.Selected = in.Nodes[random.IntN(len(in.Nodes))].Name
		}
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { check(t, in, random) })
	}
}

func TestRequirementIgnoresOrder(t *testing.T) {
	cases(t, func(t *testing.T, in Input, random *rand.Rand) {
		want, wantErr := Requirement(in)
		shuffled := in
		shuffled.Nodes, shuffled.Allowed = slices.Clone(in.Nodes), slices.Clone(in.Allowed)
		random.Shuffle(len(in.Nodes), func(i, j int) { shuffled.Nodes[i], shuffled.Nodes[j] = shuffled.Nodes[j], shuffled.Nodes[i] })
		random.Shuffle(len(in.Allowed), func(i, j int) { shuffled.Allowed[i], shuffled.Allowed[j] = shuffled.Allowed[j], shuffled.Allowed[i] })
		got, err := Requirement(shuffled)
		if !proto.Equal(want, got) || (err == nil) != (wantErr == nil) {
			t.Errorf("%+v: %v, %v; shuffled: %v, %v", in, want, wantErr, got, err)
		}
	})
}

func TestPreferredStartsWithSelectedNode(t *testing.T) {
	cases(t, func(t *testing.T, in Input, _ *rand.Rand) {
		got, err := Requirement(in)
		if err != nil || got == nil || got.Preferred == nil {
			if err == nil && in.Selected != "" && got != nil {
				t.Errorf("%+v: no preferred topology for the selected node", in)
			}
			return
		}
		requisite, preferred := texts(got.Requisite), texts(got.Preferred)
		slices.Sort(requisite)
		all := slices.Sorted(slices.Values(preferred))
		if !slices.Equal(requisite, all) || len(slices.Compact(all)) != len(preferred) {
			t.Errorf("preferred %q is not a rotation of requisite %q", preferred, requisite)
		}
		if in.Selected == "" {
			return
		}
		i := slices.IndexFunc(in.Nodes, func(n Node) bool { return n.Name == in.Selected })
		if first := Segment(got.Preferred[0].Segments); !first.covers(in.Nodes[i].Labels) {
			t.Errorf("%s is first, but the selected node has %v", first, in.Nodes[i].Labels)
		}
	})
}

func texts(topologies []*csi.Topology) (all []string) {
	for _, topology := range topologies {
		all = append(all, Segment(topology.Segments).String())
	}
	return all
}

func TestKeysAreFromOneNode(t *testing.T) {
	cases(t, func(t *testing.T, in Input, _ *rand.Rand) {
		in.Allowed, in.Strict = nil, false
		got, err := Requirement(in)
		if err != nil || got == nil {
			return
		}
		keys := slices.Sorted(maps.Keys(got.Requisite[0].Segments))
		for _, topology := range got.Requisite {
			if !slices.Equal(keys, slices.Sorted(maps.Keys(topology.Segments))) {
				t.Errorf("keys %q and the keys of %v", keys, topology.Segments)
			}
			if !slices.ContainsFunc(in.Nodes, func(n Node) bool { return sameKeys(n.Keys, keys) && Segment(topology.Segments).covers(n.Labels) }) {
				t.Errorf("%v is not the segment of a node with the keys %q", topology.Segments, keys)
			}
		}
	})
}

func TestStatefulSetVolumesAreSpread(t *testing.T) {
	nodes := []Node{}
	for i := range 3 {
		nodes = append(nodes, Node{Name: fmt.Sprint(i), Keys: []string{"zone"}, Labels: map[string]string{"zone": fmt.Sprint("z", i)}})
	}
	first := func(claim string, on bool) string {
		got, err := Requirement(Input{Nodes: nodes, Claim: claim, Spread: on, UID: claim})
		if err != nil {
			t.Fatal(err)
		}
		if got.Preferred == nil {
			return ""
		}
		return got.Preferred[0].Segments["zone"]
	}
	count := map[string]int{}
	for i := range 9 {
		count[first(fmt.Sprint("data-web-", i), true)]++
		if data, log := first(fmt.Sprint("data-web-", i), true), first(fmt.Sprint("log-web-", i), true); data != log {
			t.Errorf("volumes of pod %d are in %s and %s", i, data, log)
		}
	}
	if diff := cmp.Diff(map[string]int{"z0": 3, "z1": 3, "z2": 3}, count); diff != "" {
		t.Error(diff)
	}
	for _, claim := range []string{"data", "data-web", "data-web-x1"} {
		if got := first(claim, true); got != "" {
			t.Errorf("%s is preferred for claim %q, which is not of a StatefulSet", got, claim)
		}
	}
	if got := first("data-web-1", false); got != "" {
		t.Errorf("%s is preferred although spreading is disabled", got)
	}
}

func TestInvalidInput(t *testing.T) {
	zone := func(values ...string) []corev1.TopologySelectorTerm {
		return []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "zone", Values: values}}}}
	}
	node := Node{Name: "a", Keys: []string{"zone"}, Labels: map[string]string{"zone": "z0"}}
	for title, in := range map[string]Input{
		"node without the driver": {Nodes: []Node{node}, Selected: "b"},
		"no keys":                 {Nodes: []Node{{Name: "a"}}, Selected: "a"},
		"no label":                {Nodes: []Node{{Name: "a", Keys: []string{"zone"}}}, Selected: "a"},
		"not allowed":             {Nodes: []Node{node}, Selected: "a", Allowed: zone("z1")},
	} {
		if got, err := Requirement(in); err == nil {
			t.Errorf("%s: %v", title, got)
		}
	}
	if got, err := Requirement(Input{}); got != nil || err != nil {
		t.Errorf("without nodes: %v, %v", got, err)
	}
}

func TestNodeAffinityHasOneTermPerSegment(t *testing.T) {
	term := func(pairs ...string) corev1.NodeSelectorTerm {
		var result corev1.NodeSelectorTerm
		for i := 0; i < len(pairs); i += 2 {
			result.MatchExpressions = append(result.MatchExpressions, corev1.NodeSelectorRequirement{Key: pairs[i], Operator: corev1.NodeSelectorOpIn, Values: []string{pairs[i+1]}})
		}
		return result
	}
	got := NodeAffinity([]*csi.Topology{
		{Segments: map[string]string{"zone": "b", "rack": "2"}}, {Segments: map[string]string{"zone": "a", "rack": "1"}}, {Segments: map[string]string{"zone": "b", "rack": "1"}},
	})
	want := &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
		term("rack", "1", "zone", "a"), term("rack", "1", "zone", "b"), term("rack", "2", "zone", "b"),
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := NodeAffinity(nil); got != nil {
		t.Errorf("affinity %v without topology", got)
	}
}
