package buildcontroller

import (
	"context"
	"slices"
	"time"

	buildv1 "github.com/openshift/api/build/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
	"github.com/slipway-platform/slipway/controller"
)

// byConfig is the index of builds by their configuration, as <namespace>/<name>.
const byConfig = "config"

// buildIndexers are what the cache of builds needs beside its names.
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

// buildsOf are the builds of a configuration.
func buildsOf(known cache.Indexer, namespace, config string) (builds []*buildv1.Build) {
	found, _ := known.ByIndex(byConfig, namespace+"/"+config) // the index exists
	for _, object := range found {
		builds = append(builds, object.(*buildv1.Build))
	}
	return builds
}

// siblings are the other builds of a build's configuration.
func (l *buildLoop) siblings(build *buildv1.Build) (others []*buildv1.Build) {
	config := instantiate.ConfigOf(build)
	if config == "" {
		return nil
	}
	for _, other := range buildsOf(l.known, build.Namespace, config) {
		if other.Name != build.Name {
			others = append(others, other)
		}
	}
	return others
}

// another is when a build that waits looks again whether its turn has come: the end of the one before wakes it, this is for what nobody has thought of.
const another = 5 * time.Minute

// turn applies the run policy: it says whether a build has to wait for others of its configuration, and with SerialLatestOnly cancels those that
// it takes the place of.
func (l *buildLoop) turn(ctx context.Context, build *buildv1.Build) (wait bool, err error) {
	policy := instantiate.Policy(build)
	if policy == buildv1.BuildRunPolicyParallel {
		return false, nil
	}
	number := instantiate.Number(build)
	for _, other := range l.siblings(build) {
		latestOnly := policy == buildv1.BuildRunPolicySerialLatestOnly
		switch {
		case !holds(other):
		case other.Status.Phase != buildv1.BuildPhaseNew:
			wait = true
		case !waits(other):
		case !latestOnly && instantiate.Number(other) < number:
			wait = true
		case latestOnly && instantiate.Number(other) > number:
			if instantiate.Policy(other) == policy {
				return true, nil // it will cancel this one
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

// room is when a build looks again whether a quota has room for its pod, after one before it has ended.
const room = 500 * time.Millisecond

// makesRoom says whether a build of the same configuration has just ended, whose pod a quota may still count while it is taken down.
func (l *buildLoop) makesRoom(build *buildv1.Build) bool {
	return slices.ContainsFunc(l.siblings(build), func(other *buildv1.Build) bool {
		ended := other.Status.CompletionTimestamp
		return instantiate.Ended(other) && ended != nil && time.Since(ended.Time) < farewell
	})
}

// holds says whether others may have to wait for a build. They do not for pipelines, since Jenkins has queues of its own.
func holds(build *buildv1.Build) bool {
	return !instantiate.Ended(build) && build.DeletionTimestamp == nil && build.Spec.Strategy.JenkinsPipelineStrategy == nil
}

// waits says whether a build has not begun and will.
func waits(build *buildv1.Build) bool {
	return holds(build) && build.Status.Phase == buildv1.BuildPhaseNew && !build.Status.Cancelled
}

// withNext is a build and, when nobody has to wait for it any more, those of its configuration whose turn may have come.
func (l *buildLoop) withNext(object any) []controller.Key {
	build := object.(*buildv1.Build)
	keys := []controller.Key{cache.MetaObjectToName(build)}
	if build.Spec.Strategy.JenkinsPipelineStrategy != nil || holds(build) && !l.gone(build) {
		return keys
	}
	var first, latest *buildv1.Build
	for _, other := range l.siblings(build) {
		if !waits(other) {
			continue
		}
		switch instantiate.Policy(other) {
		case buildv1.BuildRunPolicySerial:
			if first == nil || instantiate.Number(other) < instantiate.Number(first) {
				first = other
			}
		case buildv1.BuildRunPolicySerialLatestOnly:
			if latest == nil || instantiate.Number(other) > instantiate.Number(latest) {
				latest = other
			}
		}
	}
	for _, next := range []*buildv1.Build{first, latest} {
		if next != nil {
			keys = append(keys, cache.MetaObjectToName(next))
		}
	}
	return keys
}

// gone says whether a build is not there any more, though perhaps another one of its name.
func (l *buildLoop) gone(build *buildv1.Build) bool {
	known, err := l.builds.Builds(build.Namespace).Get(build.Name)
	return apierrors.IsNotFound(err) || err == nil && known.UID != build.UID
}
