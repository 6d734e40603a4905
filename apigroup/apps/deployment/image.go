package deployment

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "github.com/openshift/api/apps/v1"
	imagev1 "github.com/openshift/api/image/v1"
	appsclient "github.com/openshift/client-go/apps/clientset/versioned/typed/apps/v1"
	appslisters "github.com/openshift/client-go/apps/listers/apps/v1"
	imagelisters "github.com/openshift/client-go/image/listers/image/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
	"github.com/slipway-platform/slipway/apigroup/image/pull"
	"github.com/slipway-platform/slipway/controller"
)

// imageChangeController updates the images in configurations that have ImageChange triggers.
type imageChangeController struct {
	apps    appsclient.DeploymentConfigsGetter
	configs appslisters.DeploymentConfigLister
	streams imagelisters.ImageStreamLister
	check   pull.Check
	events  record.EventRecorder
}

// byStream is the name of the index that maps image streams to the configurations whose triggers
// watch them.
const byStream = "stream"

func (l *imageChangeController) controller(configs, streams cache.SharedIndexInformer) (controller.Controller, error) {
	changes, err := controller.WatchReferences(configs, byStream, func(object any) []string {
		return rollout.Streams(object.(*appsv1.DeploymentConfig))
	}, streams)
	if err != nil {
		return controller.Controller{}, fmt.Errorf("watch deployment configurations' image streams: %w", err)
	}
	return controller.Controller{
		Name:      "deployment images",
		Watches:   []controller.Watch{{Informer: configs}, changes},
		Reconcile: l.reconcile, MinBackoff: minBackoff,
	}, nil
}

func (l *imageChangeController) reconcile(ctx context.Context, key controller.Key) error {
	config, live, err := controller.Live(l.configs.DeploymentConfigs(key.Namespace).Get(key.Name))
	if !live || config.Spec.Paused {
		return err
	}
	dc := config.DeepCopy()
	streams, err := l.readable(ctx, dc)
	if err != nil {
		return err
	}
	if err := l.report(ctx, dc, streams.forbidden); err != nil {
		return err
	}
	if rollout.UpdateImages(dc, nil, streams.stream) {
		if _, err := l.apps.DeploymentConfigs(key.Namespace).Update(ctx, dc, metav1.UpdateOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("update images: %w", err)
		}
	}
	if streams.forbidden != "" {
		return controller.RequeueAfter(pull.RecheckInterval)
	}
	return nil
}

// readable holds the image streams that a configuration's triggers watch and its pods can pull
// from.
type readable struct {
	streams map[controller.Key]*imagev1.ImageStream
	// forbidden is a message about a stream that the pods cannot pull from, or "".
	forbidden string
}

func (r readable) stream(namespace, name string) *imagev1.ImageStream {
	return r.streams[controller.Key{Namespace: namespace, Name: name}]
}

// readable returns the image streams of a configuration's triggers. It reads a stream in another
// project only after an access check.
func (l *imageChangeController) readable(ctx context.Context, dc *appsv1.DeploymentConfig) (readable, error) {
	streams := readable{streams: map[controller.Key]*imagev1.ImageStream{}}
	account := pull.AccountOf(dc.Namespace, &dc.Spec.Template.Spec)
	for _, text := range rollout.Streams(dc) {
		namespace, name, _ := strings.Cut(text, "/")
		if namespace != dc.Namespace {
			allowed, err := l.check(ctx, account, pull.Get, namespace, name)
			if err != nil {
				return streams, err
			}
			if !allowed {
				streams.forbidden = pull.Forbidden(account, namespace, name)
				continue
			}
		}
		stream, err := l.streams.ImageStreams(namespace).Get(name)
		if err == nil { // the creation of a missing stream causes a reconcile
			streams.streams[controller.Key{Namespace: namespace, Name: name}] = stream
		}
	}
	return streams, nil
}

// report records missing access in an event and in a condition. If forbidden is empty, it removes
// the condition.
func (l *imageChangeController) report(ctx context.Context, dc *appsv1.DeploymentConfig, forbidden string) error {
	next := dc.DeepCopy()
	next.Status.Conditions = slices.DeleteFunc(next.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return forbidden == "" && c.Type == pull.ConditionType
	})
	if forbidden != "" {
		l.events.Event(dc, corev1.EventTypeWarning, pull.ForbiddenReason, forbidden)
		setCondition(&next.Status, *condition(pull.ConditionType, corev1.ConditionFalse, pull.ForbiddenReason, forbidden))
	}
	if apiequality.Semantic.DeepEqual(next.Status, dc.Status) {
		return nil
	}
	config, err := l.apps.DeploymentConfigs(dc.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("update status: %w", err)
	}
	dc.ResourceVersion, dc.Status = config.ResourceVersion, config.Status
	return nil
}

// unresolved returns the names of the containers that do not have an image yet.
func unresolved(template *corev1.PodTemplateSpec) (names []string) {
	for _, container := range slices.Concat(template.Spec.InitContainers, template.Spec.Containers) {
		if container.Image == "" || container.Image == " " {
			names = append(names, container.Name)
		}
	}
	return names
}
