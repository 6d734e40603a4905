package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// adviseCycles finds cycles of build configs, in which the builds would trigger each other forever.
func (v *view) adviseCycles() (all []advice) {
	done := map[string]bool{}
	for _, config := range v.state.BuildConfigs {
		for _, cycle := range v.cycles(config, nil, done) {
			all = append(all, advice{isWarning, "Cycle detected in build configurations: " + strings.Join(cycle, " -> "), "change one of them to build from another image"})
		}
	}
	return all
}

// cycles follows the input images of a build config to the build configs that build them. path
// contains the build configs that lead to this build config. done contains the build configs that
// are fully explored.
func (v *view) cycles(config buildv1.BuildConfig, path []string, done map[string]bool) (cycles [][]string) {
	name := v.name("bc", config.Namespace, config.Name)
	if at := slices.Index(path, name); at >= 0 {
		cycle := append(slices.Clone(path[at:]), name)
		slices.Reverse(cycle) // so that it is in the order of the builds
		return [][]string{cycle}
	}
	if done[name] {
		return nil
	}
	path = append(slices.Clone(path), name)
	for _, from := range inputs(config.Spec) {
		for _, builder := range v.state.buildersOf(config.Namespace, from) {
			cycles = append(cycles, v.cycles(builder, path, done)...)
		}
	}
	done[name] = true
	return cycles
}

// inputs returns a build config's input images.
func inputs(spec buildv1.BuildConfigSpec) (all []corev1.ObjectReference) {
	switch strategy := spec.Strategy; {
	case strategy.SourceStrategy != nil:
		all = append(all, strategy.SourceStrategy.From)
	case strategy.DockerStrategy != nil && strategy.DockerStrategy.From != nil:
		all = append(all, *strategy.DockerStrategy.From)
	case strategy.CustomStrategy != nil:
		all = append(all, strategy.CustomStrategy.From)
	}
	for _, image := range spec.Source.Images {
		all = append(all, image.From)
	}
	return all
}

// selector is a controller's pod selector. name identifies the controller.
type selector struct {
	name    string
	matches labels.Selector
}

// adviseOverlaps finds pods that are selected by several controllers, because each of these
// controllers also counts the other controllers' pods.
func (v *view) adviseOverlaps() (all []advice) {
	selectors, seen := v.selectors(), map[[2]string]bool{}
	for _, pod := range v.state.Pods {
		var by []string
		for _, selector := range selectors[pod.Namespace] {
			if selector.matches.Matches(labels.Set(pod.Labels)) {
				by = append(by, selector.name)
			}
		}
		for _, other := range by[min(1, len(by)):] {
			if pair := [2]string{by[0], other}; !seen[pair] {
				seen[pair] = true
				all = append(all, advice{isWarning, fmt.Sprintf("%s and %s both select %s.", by[0], other, v.name("pod", pod.Namespace, pod.Name)),
					"change their selectors so that they select different pods"})
			}
		}
	}
	return all
}

// selectors returns the pod selectors of replication controllers, replica sets, stateful sets and
// daemon sets, keyed by project. The selectors of each project are sorted by name.
func (v *view) selectors() map[string][]selector {
	all := map[string][]selector{}
	add := func(kind string, object metav1.Object, matches labels.Selector) {
		if !matches.Empty() {
			in := object.GetNamespace()
			all[in] = append(all[in], selector{v.name(kind, in, object.GetName()), matches})
		}
	}
	addSet := func(kind string, object metav1.Object, of *metav1.LabelSelector) {
		// Skip invalid selectors. Normally, the server has rejected them.
		if matches, err := metav1.LabelSelectorAsSelector(of); err == nil {
			add(kind, object, matches)
		}
	}
	for _, controller := range v.state.Controllers {
		add("rc", &controller, labels.SelectorFromSet(controller.Spec.Selector))
	}
	for _, set := range v.state.ReplicaSets {
		addSet("rs", &set, set.Spec.Selector)
	}
	for _, set := range v.state.StatefulSets {
		addSet("statefulset", &set, set.Spec.Selector)
	}
	for _, set := range v.state.DaemonSets {
		addSet("ds", &set, set.Spec.Selector)
	}
	for _, list := range all {
		slices.SortFunc(list, func(a, b selector) int { return cmp.Compare(a.name, b.name) })
	}
	return all
}
