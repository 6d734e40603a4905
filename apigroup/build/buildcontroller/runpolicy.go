package buildcontroller

import (
	"context"
	"errors"
	"slices"
	"time"

	buildv1 "github.com/openshift/api/build/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
	"github.com/slipway-platform/slipway/controller"
)

// byConfig is the name of the index that maps configurations to their builds. Its keys have the
// form <namespace>/<name>.
const byConfig = "config"

// buildIndexers returns the additional indexers for the build informer.
func buildIndexers() cache.Indexers {
	return cache.Indexers{byConfig: func(object any) ([]string, error) {
		build := object.(*buildv1.Build)
		config := instantiate.ConfigOf(build)
		if config == "" {
			return nil, nil
		}
		return []string{build.Namespace + "/" + config}, nil
	}}
}

// buildsOf returns a configuration's builds.
func buildsOf(indexer cache.Indexer, namespace, config string) (builds []*buildv1.Build) {
	objects, _ := indexer.ByIndex(byConfig, namespace+"/"+config) // the index exists
	for _, object := range objects {
		builds = append(builds, object.(*buildv1.Build))
	}
	return builds
}

// siblingBuilds returns the other builds of the same configuration.
func (l *buildController) siblingBuilds(build *buildv1.Build) (builds []*buildv1.Build) {
	config := instantiate.ConfigOf(build)
	if config == "" {
		return nil
	}
	for _, other := range buildsOf(l.indexer, build.Namespace, config) {
		if other.Name != build.Name {
			builds = append(builds, other)
		}
	}
	return builds
}

// requeueInterval is a safety net for builds that wait for a running build. Normally, a waiting
// build is reconciled when the previous build finishes.
const requeueInterval = 5 * time.Minute

// errBehind means that a build waits for another waiting build. The controller does not requeue the
// build periodically, because a user can create thousands of builds, and they start one after
// another.
var errBehind = errors.New("an earlier build is waiting")

// mustWait applies the run policy: it reports whether a build must wait for other builds of its
// configuration. With Serial, the error is errBehind if one of these builds is waiting too. With
// SerialLatestOnly, mustWait cancels older waiting builds.
func (l *buildController) mustWait(ctx context.Context, build *buildv1.Build) (wait bool, err error) {
	policy := instantiate.Policy(build)
	if policy == buildv1.BuildRunPolicyParallel {
		return false, nil
	}
	number := instantiate.Number(build)
	for _, other := range l.siblingBuilds(build) {
		latestOnly := policy == buildv1.BuildRunPolicySerialLatestOnly
		switch {
		case !l.blocksOthers(other):
		case other.Status.Phase != buildv1.BuildPhaseNew:
			wait = true
		case !l.isWaiting(other):
		case !latestOnly && instantiate.Number(other) < number:
			return true, errBehind
		case latestOnly && instantiate.Number(other) > number:
			if instantiate.Policy(other) == policy {
				return true, nil // the other build cancels this build
			}
		case latestOnly:
			next := other.DeepCopy()
			next.Status.Cancelled = true
			if err := l.update(ctx, next); err != nil {
				return true, err
			}
		}
	}
	return wait, nil
}

// quotaRequeueInterval is the interval between attempts to create a pod while the quota might still
// count the previous build's pod.
const quotaRequeueInterval = 500 * time.Millisecond

// siblingJustEnded reports whether another build of the same configuration finished less than
// podEndTimeout ago. A quota can still count that build's pod.
func (l *buildController) siblingJustEnded(build *buildv1.Build) bool {
	return slices.ContainsFunc(l.siblingBuilds(build), func(other *buildv1.Build) bool {
		end := other.Status.CompletionTimestamp
		return instantiate.Ended(other) && end != nil && time.Since(end.Time) < podEndTimeout
	})
}

// blocksOthers reports whether other builds might have to wait for this build. Builds never wait
// for pipelines that Jenkins runs, because Jenkins has its own queue.
func (l *buildController) blocksOthers(build *buildv1.Build) bool {
	return !instantiate.Ended(build) && build.DeletionTimestamp == nil && !l.servedByJenkins(build)
}

// isWaiting reports whether a build has not started yet but will start.
func (l *buildController) isWaiting(build *buildv1.Build) bool {
	return l.blocksOthers(build) && build.Status.Phase == buildv1.BuildPhaseNew && !build.Status.Cancelled
}

// nextPrefix is the prefix of the names in keys that represent a configuration's next builds. These
// keys differ from builds' keys, because a build's name cannot contain a slash.
const nextPrefix = "next/"

func nextKey(namespace, config string) controller.Key {
	return controller.Key{Namespace: namespace, Name: nextPrefix + config}
}

// keysWithNext returns a build's key and, if the build does not block other builds, the key of its
// configuration's next builds. It does not read other builds, because the informer calls it for
// every change to any build, one change at a time.
func (l *buildController) keysWithNext(object any) []controller.Key {
	build := object.(*buildv1.Build)
	keys := []controller.Key{cache.MetaObjectToName(build)}
	config := instantiate.ConfigOf(build)
	if config == "" || l.servedByJenkins(build) && l.hasJenkins(build.Namespace) || l.blocksOthers(build) && !l.isDeleted(build) {
		return keys
	}
	return append(keys, nextKey(build.Namespace, config))
}

// next returns the keys of a configuration's builds that can start next.
func (l *buildController) next(namespace, config string) (keys []controller.Key) {
	var first, latest *buildv1.Build
	for _, build := range buildsOf(l.indexer, namespace, config) {
		if !l.isWaiting(build) {
			continue
		}
		switch instantiate.Policy(build) {
		case buildv1.BuildRunPolicySerial:
			if first == nil || instantiate.Number(build) < instantiate.Number(first) {
				first = build
			}
		case buildv1.BuildRunPolicySerialLatestOnly:
			if latest == nil || instantiate.Number(build) > instantiate.Number(latest) {
				latest = build
			}
		}
	}
	for _, build := range []*buildv1.Build{first, latest} {
		if build != nil {
			keys = append(keys, cache.MetaObjectToName(build))
		}
	}
	return keys
}

// isDeleted reports whether this build no longer exists. A new build with the same name might
// exist.
func (l *buildController) isDeleted(build *buildv1.Build) bool {
	current, err := l.builds.Builds(build.Namespace).Get(build.Name)
	return apierrors.IsNotFound(err) || err == nil && current.UID != build.UID
}
