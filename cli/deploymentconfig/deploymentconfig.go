// Package deploymentconfig adds support for DeploymentConfigs to kubectl's rollout, set, logs,
// exec, attach, port-forward and expose commands. To do this, it replaces kubectl's function
// variables.
//
// The messages of `rollout status` and `rollout history` match OpenShift 3.11's client.
package deploymentconfig

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "github.com/openshift/api/apps/v1"
	appsclient "github.com/openshift/client-go/apps/clientset/versioned/typed/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/polymorphichelpers"
	"k8s.io/kubectl/pkg/scheme"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
)

// Register adds DeploymentConfigs to kubectl's schemes, and replaces kubectl's function variables.
// It must be called once, at the start of the process.
func Register() error {
	// `port-forward` decodes objects with client-go's scheme. All other commands use kubectl's
	// scheme.
	if err := errors.Join(appsv1.Install(scheme.Scheme), appsv1.Install(clientscheme.Scheme)); err != nil {
		return fmt.Errorf("register deployment configs: %w", err)
	}
	history, status, undo := polymorphichelpers.HistoryViewerFn, polymorphichelpers.StatusViewerFn, polymorphichelpers.RollbackerFn
	polymorphichelpers.HistoryViewerFn = func(getter genericclioptions.RESTClientGetter, mapping *meta.RESTMapping) (polymorphichelpers.HistoryViewer, error) {
		if !isDeploymentConfig(mapping) {
			return history(getter, mapping)
		}
		return connect(getter)
	}
	polymorphichelpers.StatusViewerFn = func(mapping *meta.RESTMapping) (polymorphichelpers.StatusViewer, error) {
		if !isDeploymentConfig(mapping) {
			return status(mapping)
		}
		return statusViewer{}, nil
	}
	polymorphichelpers.RollbackerFn = func(getter genericclioptions.RESTClientGetter, mapping *meta.RESTMapping) (polymorphichelpers.Rollbacker, error) {
		if !isDeploymentConfig(mapping) {
			return undo(getter, mapping)
		}
		return connect(getter)
	}
	polymorphichelpers.ObjectPauserFn = pausing(polymorphichelpers.ObjectPauserFn, true)
	polymorphichelpers.ObjectResumerFn = pausing(polymorphichelpers.ObjectResumerFn, false)
	polymorphichelpers.ObjectRestarterFn = restarting(polymorphichelpers.ObjectRestarterFn)
	update := polymorphichelpers.UpdatePodSpecForObjectFn
	polymorphichelpers.UpdatePodSpecForObjectFn = func(object runtime.Object, change func(*corev1.PodSpec) error) (bool, error) {
		dc, ok := object.(*appsv1.DeploymentConfig)
		if !ok {
			return update(object, change)
		}
		if dc.Spec.Template == nil {
			dc.Spec.Template = &corev1.PodTemplateSpec{}
		}
		return true, change(&dc.Spec.Template.Spec)
	}
	registerPodFunctions()
	return nil
}

// registerPodFunctions adds support for DeploymentConfigs to functions that support
// ReplicationControllers. These functions implement exec, attach, port-forward, logs --all-pods and
// expose.
func registerPodFunctions() {
	attachable := polymorphichelpers.AttachablePodForObjectFn
	polymorphichelpers.AttachablePodForObjectFn = func(getter genericclioptions.RESTClientGetter, object runtime.Object, timeout time.Duration) (*corev1.Pod, error) {
		return attachable(getter, controller(object), timeout)
	}
	logs := polymorphichelpers.AllPodLogsForObjectFn
	polymorphichelpers.AllPodLogsForObjectFn = func(getter genericclioptions.RESTClientGetter, object, options runtime.Object, timeout time.Duration, all bool) (map[corev1.ObjectReference]rest.ResponseWrapper, error) {
		return logs(getter, controller(object), options, timeout, all)
	}
	exposed := polymorphichelpers.CanBeExposedFn
	polymorphichelpers.CanBeExposedFn = func(kind schema.GroupKind) error {
		if kind == appsv1.GroupVersion.WithKind("DeploymentConfig").GroupKind() {
			return nil
		}
		return exposed(kind)
	}
	polymorphichelpers.MapBasedSelectorForObjectFn = ofController(polymorphichelpers.MapBasedSelectorForObjectFn)
	polymorphichelpers.PortsForObjectFn = ofController(polymorphichelpers.PortsForObjectFn)
	polymorphichelpers.MultiProtocolsForObjectFn = ofController(polymorphichelpers.MultiProtocolsForObjectFn)
}

// controller converts a DeploymentConfig to a ReplicationController with the same selector and
// template. It returns any other object unchanged.
func controller(object runtime.Object) runtime.Object {
	dc, ok := object.(*appsv1.DeploymentConfig)
	if !ok {
		return object
	}
	return &corev1.ReplicationController{
		ObjectMeta: metav1.ObjectMeta{Namespace: dc.Namespace, Name: dc.Name},
		Spec:       corev1.ReplicationControllerSpec{Selector: dc.Spec.Selector, Template: dc.Spec.Template},
	}
}

func ofController[T any](of func(runtime.Object) (T, error)) func(runtime.Object) (T, error) {
	return func(object runtime.Object) (T, error) { return of(controller(object)) }
}

// isDeploymentConfig reports whether a mapping is for the DeploymentConfig resource.
func isDeploymentConfig(mapping *meta.RESTMapping) bool {
	return mapping.Resource.GroupResource() == appsv1.GroupVersion.WithResource("deploymentconfigs").GroupResource()
}

// pausing returns a function that pauses or resumes a DeploymentConfig. fallback handles other
// objects.
func pausing(fallback func(runtime.Object) ([]byte, error), pause bool) func(runtime.Object) ([]byte, error) {
	return func(object runtime.Object) ([]byte, error) {
		dc, ok := object.(*appsv1.DeploymentConfig)
		switch {
		case !ok:
			return fallback(object)
		case dc.Spec.Paused && pause:
			return nil, errors.New("is already paused")
		case !dc.Spec.Paused && !pause:
			return nil, errors.New("is not paused")
		}
		dc.Spec.Paused = pause
		return runtime.Encode(scheme.Codecs.LegacyCodec(appsv1.GroupVersion), dc)
	}
}

// restarting returns a function that, like `kubectl rollout restart`, sets an annotation on the pod
// template to the current time. The config change trigger then starts a deployment. The function
// returns an error if the deployment config has no such trigger. fallback handles other objects.
func restarting(fallback func(runtime.Object) ([]byte, error)) func(runtime.Object) ([]byte, error) {
	return func(object runtime.Object) ([]byte, error) {
		dc, ok := object.(*appsv1.DeploymentConfig)
		switch {
		case !ok:
			return fallback(object)
		case dc.Spec.Paused:
			return nil, errors.New("can't restart paused deployment config (run rollout resume first)")
		case !rollout.HasTrigger(dc, appsv1.DeploymentTriggerOnConfigChange):
			return nil, fmt.Errorf("no trigger deploys it when its template changes; use oc rollout latest dc/%s", dc.Name)
		case dc.Spec.Template == nil:
			dc.Spec.Template = &corev1.PodTemplateSpec{}
		}
		metav1.SetMetaDataAnnotation(&dc.Spec.Template.ObjectMeta, "kubectl.kubernetes.io/restartedAt", time.Now().Format(time.RFC3339))
		return runtime.Encode(scheme.Codecs.LegacyCodec(appsv1.GroupVersion), dc)
	}
}

// Client reads and updates DeploymentConfigs and their deployments.
type Client struct {
	apps appsclient.AppsV1Interface
	core coreclient.CoreV1Interface
}

func connect(getter genericclioptions.RESTClientGetter) (*Client, error) {
	config, err := getter.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	return New(config)
}

// New returns a client.
func New(config *rest.Config) (*Client, error) {
	apps, err := appsclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	core, err := coreclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return &Client{apps, core}, nil
}

// deployments returns a deployment config's deployments, newest first.
func (c *Client) deployments(ctx context.Context, namespace, name string) (all []*corev1.ReplicationController, err error) {
	list, err := c.core.ReplicationControllers(namespace).List(ctx, metav1.ListOptions{LabelSelector: rollout.Selector(name).String()})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	rollout.Newest(all)
	return all, nil
}
