package buildcontroller

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/controller"
)

// numbered returns a build of the configuration "app" with the given number.
func numbered(number int, phase buildv1.BuildPhase, policy buildv1.BuildRunPolicy) *buildv1.Build {
	result := build()
	text := strconv.Itoa(number)
	result.Name, result.UID, result.Status.Phase = "app-"+text, types.UID(text), phase
	result.Labels = map[string]string{buildv1.BuildConfigLabel: "app", buildv1.BuildRunPolicyLabel: string(policy)}
	result.Annotations = map[string]string{buildv1.BuildConfigAnnotation: "app", buildv1.BuildNumberAnnotation: text}
	return result
}

func asPipeline(build *buildv1.Build) *buildv1.Build {
	build.Spec.Strategy = buildv1.BuildStrategy{JenkinsPipelineStrategy: &buildv1.JenkinsPipelineBuildStrategy{}}
	return build
}

func TestPipelineOfJenkinsBlocksNoBuildAndCanBeCanceled(t *testing.T) {
	pipeline, next := asPipeline(numbered(1, "New", "Serial")), numbered(2, "New", "Serial")
	loop := newLoop(t, []*buildv1.Build{pipeline, next})
	if wait, err := loop.mustWait(t.Context(), next); !wait || !errors.Is(err, errBehind) {
		t.Errorf("without Jenkins, next build waits %v: %v", wait, err)
	}
	addJenkins(t, loop)
	if wait, err := loop.mustWait(t.Context(), next); wait || err != nil {
		t.Errorf("next build waits %v: %v", wait, err)
	}
	pipeline.Status.Cancelled = true
	if err := loop.reconcile(t.Context(), controller.Key{Namespace: "shop", Name: "app-1"}); err != nil {
		t.Fatal(err)
	}
	if got, err := loop.client.Builds("shop").Get(t.Context(), "app-1", metav1.GetOptions{}); err != nil || got.Status.Phase != buildv1.BuildPhaseCancelled {
		t.Errorf("pipeline status is %+v, %v", got.Status, err)
	}
}

// The build must keep its active phase, because otherwise Jenkins does not stop the run.
func TestCanceledRunOfJenkinsKeepsItsPhase(t *testing.T) {
	for _, phase := range []buildv1.BuildPhase{buildv1.BuildPhasePending, buildv1.BuildPhaseRunning} {
		pipeline := asPipeline(numbered(1, phase, "Serial"))
		pipeline.Status.Cancelled = true
		loop := newLoop(t, []*buildv1.Build{pipeline})
		addJenkins(t, loop)
		if err := loop.reconcile(t.Context(), controller.Key{Namespace: "shop", Name: "app-1"}); err != nil {
			t.Fatal(err)
		}
		if got, err := loop.client.Builds("shop").Get(t.Context(), "app-1", metav1.GetOptions{}); err != nil || got.Status.Phase != phase {
			t.Errorf("the phase is %s, want %s: %v", got.Status.Phase, phase, err)
		}
	}
}

// A pipeline without the annotation of a pod was started by Jenkins.
func TestRunOfJenkinsSurvivesDeletionOfService(t *testing.T) {
	for _, phase := range []buildv1.BuildPhase{buildv1.BuildPhasePending, buildv1.BuildPhaseRunning} {
		for canceled, want := range map[bool]buildv1.BuildPhase{false: phase, true: buildv1.BuildPhaseCancelled} {
			pipeline := asPipeline(numbered(1, phase, "Serial"))
			pipeline.Status.Cancelled = canceled
			loop := newLoop(t, []*buildv1.Build{pipeline})
			if err := loop.reconcile(t.Context(), controller.Key{Namespace: "shop", Name: "app-1"}); err != nil {
				t.Fatal(err)
			}
			if keys := loop.keysOfJenkins(service("jenkins")); !slices.Contains(keys, controller.Key{Namespace: "shop", Name: "app-1"}) {
				t.Errorf("the deletion of the service enqueues %v", keys)
			}
			if got, err := loop.client.Builds("shop").Get(t.Context(), "app-1", metav1.GetOptions{}); err != nil || got.Status.Phase != want {
				t.Errorf("canceled %v: the phase is %s, want %s: %v", canceled, got.Status.Phase, want, err)
			}
		}
	}
}

// addJenkins adds a Jenkins service to the project.
func addJenkins(t *testing.T, loop *buildController) {
	t.Helper()
	services := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	if err := services.Add(service("jenkins")); err != nil {
		t.Fatal(err)
	}
	loop.services = corelisters.NewServiceLister(services)
}

func service(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
}

// When Jenkins starts to run a waiting pipeline, the builds that wait for the pipeline must be
// enqueued, because no other event enqueues them.
func TestServiceOfJenkinsEnqueuesBuildBehindPipeline(t *testing.T) {
	loop := newLoop(t, []*buildv1.Build{asPipeline(numbered(1, "New", "Serial")), numbered(2, "New", "Serial"), numbered(3, "New", "Serial")})
	addJenkins(t, loop)
	if keys := loop.keysOfJenkins(service("other")); len(keys) > 0 {
		t.Errorf("another service enqueues %v", keys)
	}
	var got []string
	for _, key := range withNext(loop, loop.keysOfJenkins(service("jenkins"))) {
		got = append(got, key.Name)
	}
	if want := []string{"app-1", "app-2"}; !slices.Equal(got, want) {
		t.Errorf("keys are %q, want %q", got, want)
	}
}

// enqueued returns the keys of the builds that are reconciled after a build has changed.
func enqueued(loop *buildController, build *buildv1.Build) []controller.Key {
	return withNext(loop, loop.keysWithNext(build))
}

// withNext replaces the keys of configurations with the keys of their next builds.
func withNext(loop *buildController, from []controller.Key) (keys []controller.Key) {
	for _, key := range from {
		config, ok := strings.CutPrefix(key.Name, nextPrefix)
		if !ok {
			keys = append(keys, key)
			continue
		}
		keys = append(keys, loop.next(key.Namespace, config)...)
	}
	return keys
}

func TestEndOfBuildEnqueuesNextBuild(t *testing.T) {
	canceledOutcome := numbered(2, "New", "Serial")
	canceledOutcome.Status.Cancelled = true
	terminating := numbered(1, "Running", "Serial")
	terminating.DeletionTimestamp = now()
	other := numbered(1, "Complete", "Serial")
	other.Annotations[buildv1.BuildConfigAnnotation] = "other"
	waiting := func(policy buildv1.BuildRunPolicy) []*buildv1.Build {
		return []*buildv1.Build{numbered(5, "New", policy), numbered(3, "New", policy), numbered(4, "New", policy), canceledOutcome, asPipeline(numbered(6, "New", policy))}
	}
	for name, tt := range map[string]struct {
		first   *buildv1.Build
		indexer bool
		policy  buildv1.BuildRunPolicy
		want    []string
	}{
		"new":                      {numbered(1, "New", "Serial"), true, "Serial", []string{"app-1"}},
		"running":                  {numbered(1, "Running", "Serial"), true, "Serial", []string{"app-1"}},
		"ended":                    {numbered(1, "Failed", "Serial"), true, "Serial", []string{"app-1", "app-3"}},
		"terminating":              {terminating, true, "Serial", []string{"app-1", "app-3"}},
		"deleted":                  {numbered(1, "Running", "Serial"), false, "Serial", []string{"app-1", "app-3"}},
		"serial latest only":       {numbered(1, "Complete", "SerialLatestOnly"), true, "SerialLatestOnly", []string{"app-1", "app-5"}},
		"no build waits":           {numbered(1, "Complete", "Parallel"), true, "Parallel", []string{"app-1"}},
		"a pipeline":               {asPipeline(numbered(1, "Complete", "Serial")), true, "Serial", []string{"app-1"}},
		"of another configuration": {other, true, "Serial", []string{"app-1"}},
	} {
		builds := waiting(tt.policy)
		if tt.indexer {
			builds = append(builds, tt.first)
		}
		var got []string
		loop := newLoop(t, builds)
		addJenkins(t, loop)
		for _, key := range enqueued(loop, tt.first) {
			got = append(got, key.Name)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: keys are %q, want %q", name, got, tt.want)
		}
	}
}

// TestEveryWaitingBuildStarts finishes one build after another, and reconciles only the builds that
// are enqueued when each build finishes.
func TestEveryWaitingBuildStarts(t *testing.T) {
	for _, policies := range [][]buildv1.BuildRunPolicy{
		{"Serial", "Serial", "Serial", "Serial"}, {"SerialLatestOnly", "SerialLatestOnly", "SerialLatestOnly", "SerialLatestOnly"},
		{"Serial", "SerialLatestOnly", "Serial", "Serial"}, {"SerialLatestOnly", "Serial", "SerialLatestOnly", "Serial"},
	} {
		builds := []*buildv1.Build{numbered(1, "Running", policies[0])}
		for i, policy := range policies[1:] {
			builds = append(builds, numbered(i+2, "New", policy))
		}
		loop := newLoop(t, builds)
		runs := builds[0]
		for runs != nil {
			build := runs.DeepCopy()
			build.Status.Phase = buildv1.BuildPhaseComplete
			runs = startNext(t, loop, build)
		}
		for _, build := range buildsOf(loop.indexer, "shop", "app") {
			if loop.isWaiting(build) {
				t.Errorf("policies %q: build %s never starts", policies, build.Name)
			}
		}
	}
}

// startNext stores a finished build. It returns the build that is enqueued as a result and is able
// to start, or nil.
func startNext(t *testing.T, loop *buildController, build *buildv1.Build) (begins *buildv1.Build) {
	t.Helper()
	if err := loop.indexer.Update(build); err != nil {
		t.Fatal(err)
	}
	for _, key := range enqueued(loop, build)[1:] {
		next, err := loop.builds.Builds(key.Namespace).Get(key.Name)
		if err != nil {
			t.Fatal(err)
		}
		if !loop.isWaiting(next) { // the previous build has canceled this build
			continue
		}
		wait, err := loop.mustWait(t.Context(), next)
		if err != nil && !errors.Is(err, errBehind) {
			t.Fatal(err)
		}
		list, err := loop.client.Builds("shop").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items { // canceled builds
			if build := &list.Items[i]; build.Status.Cancelled {
				if err := loop.indexer.Update(build); err != nil {
					t.Fatal(err)
				}
			}
		}
		if !wait && begins == nil {
			begins = next
		}
	}
	return begins
}

func TestWaitingBuildIsRequeued(t *testing.T) {
	loop := newLoop(t, []*buildv1.Build{numbered(1, "Running", "Serial"), numbered(2, "New", "Serial")})
	if err := loop.reconcile(t.Context(), controller.Key{Namespace: "shop", Name: "app-2"}); err == nil || err.Error() != controller.RequeueAfter(requeueInterval).Error() {
		t.Errorf("reconcile returns %v", err)
	}
}

// countingIndexer counts the lists of a configuration's builds.
type countingIndexer struct {
	cache.Indexer
	lists int
}

func (c *countingIndexer) ByIndex(name, value string) ([]any, error) {
	c.lists++
	return c.Indexer.ByIndex(name, value)
}

// A user can create thousands of builds of one configuration. Therefore, the controller must not
// list them after each change to a build, or repeatedly while builds wait.
func TestManyBuildsDoNotOccupyController(t *testing.T) {
	ended := numbered(1, "Complete", "Serial")
	loop := newLoop(t, []*buildv1.Build{ended, numbered(2, "Running", "Serial"), numbered(3, "New", "Serial"), numbered(4, "New", "Serial")})
	indexer := &countingIndexer{Indexer: loop.indexer}
	loop.indexer = indexer
	if keys := loop.keysWithNext(ended); len(keys) != 2 || indexer.lists > 0 {
		t.Errorf("a change enqueues %v and lists the builds %d times", keys, indexer.lists)
	}
	if err := loop.reconcile(t.Context(), controller.Key{Namespace: "shop", Name: "app-4"}); err != nil {
		t.Errorf("a build behind a waiting build is reconciled again: %v", err)
	}
}
