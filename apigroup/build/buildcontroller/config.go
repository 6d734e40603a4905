package buildcontroller

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	buildv1 "github.com/openshift/api/build/v1"
	buildclient "github.com/openshift/client-go/build/clientset/versioned/typed/build/v1"
	buildlisters "github.com/openshift/client-go/build/listers/build/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
	"github.com/slipway-platform/slipway/controller"
)

// configController instantiates the first build of each configuration that has a ConfigChange
// trigger, and deletes old builds.
type configController struct {
	client  buildclient.BuildV1Interface
	configs buildlisters.BuildConfigLister
	indexer cache.Indexer // contains builds, and has the indexers of buildIndexers
	events  record.EventRecorder
}

func (l *configController) controller(configs, builds cache.SharedIndexInformer) controller.Controller {
	owner := func(object any) []controller.Key {
		build := object.(*buildv1.Build)
		return []controller.Key{{Namespace: build.Namespace, Name: instantiate.ConfigOf(build)}}
	}
	return controller.Controller{
		Name:      "build configurations",
		Watches:   []controller.Watch{{Informer: configs}, {Informer: builds, Keys: owner}},
		Reconcile: l.reconcile, MinBackoff: minBackoff, MaxBackoff: maxBackoff,
	}
}

func (l *configController) reconcile(ctx context.Context, key controller.Key) error {
	config, live, err := controller.Live(l.configs.BuildConfigs(key.Namespace).Get(key.Name))
	if !live {
		return err
	}
	if err := l.prune(ctx, config); err != nil {
		return err
	}
	if config.Status.LastVersion > 0 || instantiate.Paused(config) || config.Spec.Source.Binary != nil || !instantiate.HasTrigger(config, buildv1.ConfigChangeBuildTriggerType) {
		return nil
	}
	return instantiateBuild(ctx, l.client, l.events, config, &buildv1.BuildRequest{
		LastVersion: ptr.To[int64](0), TriggeredBy: []buildv1.BuildTriggerCause{{Message: "Build configuration change"}},
	})
}

// instantiateBuild instantiates a build for a trigger. It returns no error if another instantiation
// has already handled the trigger, or if the configuration no longer exists.
func instantiateBuild(ctx context.Context, client buildclient.BuildConfigsGetter, events record.EventRecorder, config *buildv1.BuildConfig, request *buildv1.BuildRequest) error {
	request.Name = config.Name
	_, err := client.BuildConfigs(config.Namespace).Instantiate(ctx, config.Name, request, metav1.CreateOptions{})
	if err == nil || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return nil
	}
	events.Eventf(config, corev1.EventTypeWarning, "BuildConfigInstantiateFailed", "error instantiating Build from BuildConfig %s/%s: %v", config.Namespace, config.Name, err)
	return fmt.Errorf("instantiate build of %q: %w", config.Name, err)
}

// prune deletes a configuration's finished builds that exceed its history limits.
func (l *configController) prune(ctx context.Context, config *buildv1.BuildConfig) error {
	var complete, failed []*buildv1.Build
	for _, build := range buildsOf(l.indexer, config.Namespace, config.Name) {
		switch {
		case !instantiate.Ended(build) || build.DeletionTimestamp != nil:
		case build.Status.Phase == buildv1.BuildPhaseComplete:
			complete = append(complete, build)
		default:
			failed = append(failed, build)
		}
	}
	for _, old := range slices.Concat(beyondLimit(complete, config.Spec.SuccessfulBuildsHistoryLimit), beyondLimit(failed, config.Spec.FailedBuildsHistoryLimit)) {
		err := l.client.Builds(old.Namespace).Delete(ctx, old.Name, metav1.DeleteOptions{
			Preconditions: metav1.NewUIDPreconditions(string(old.UID)), PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
		})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("delete old build %q: %w", old.Name, err)
		}
	}
	return nil
}

// beyondLimit returns the builds that exceed a history limit: all except the newest builds.
func beyondLimit(builds []*buildv1.Build, limit *int32) []*buildv1.Build {
	if limit == nil {
		return nil
	}
	slices.SortFunc(builds, func(a, b *buildv1.Build) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(instantiate.Number(b), instantiate.Number(a)))
	})
	return builds[min(int(*limit), len(builds)):]
}
