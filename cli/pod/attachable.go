package pod

import (
	"context"
	"errors"
	"fmt"
	"time"

	buildv1 "github.com/openshift/api/build/v1"
	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/kubectl/pkg/polymorphichelpers"
	"k8s.io/kubectl/pkg/scheme"
)

// Register adds support for routes and builds to commands that find an object's pod, such as exec,
// attach, rsh and port-forward. It must be called once, at the start of the process.
func Register() error {
	// `port-forward` decodes objects with client-go's scheme. All other commands use kubectl's
	// scheme.
	err := errors.Join(routev1.Install(scheme.Scheme), routev1.Install(clientscheme.Scheme), buildv1.Install(scheme.Scheme), buildv1.Install(clientscheme.Scheme))
	if err != nil {
		return fmt.Errorf("register routes and builds: %w", err)
	}
	attachable := polymorphichelpers.AttachablePodForObjectFn
	polymorphichelpers.AttachablePodForObjectFn = func(getter genericclioptions.RESTClientGetter, object runtime.Object, timeout time.Duration) (*corev1.Pod, error) {
		switch object.(type) {
		case *routev1.Route, *buildv1.Build:
		default:
			return attachable(getter, object, timeout)
		}
		config, err := getter.ToRESTConfig()
		if err != nil {
			return nil, err
		}
		client, err := coreclient.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		// kubectl does not pass a context to functions of this type, and its own functions also
		// send requests without a context.
		behind, err := podOwner(context.Background(), client, object)
		if err != nil {
			return nil, err
		}
		return attachable(getter, behind, timeout)
	}
	return nil
}

// podOwner returns the object that identifies the pod of a build or route. For a build, it is the
// pod itself, and for a route, it is the service that selects the pods.
func podOwner(ctx context.Context, client coreclient.CoreV1Interface, object runtime.Object) (runtime.Object, error) {
	if route, ok := object.(*routev1.Route); ok {
		return client.Services(route.Namespace).Get(ctx, route.Spec.To.Name, metav1.GetOptions{})
	}
	build, ok := object.(*buildv1.Build)
	if !ok || build.Annotations[buildv1.BuildPodNameAnnotation] == "" {
		return nil, errors.New("the build has no pod yet")
	}
	return client.Pods(build.Namespace).Get(ctx, build.Annotations[buildv1.BuildPodNameAnnotation], metav1.GetOptions{})
}
