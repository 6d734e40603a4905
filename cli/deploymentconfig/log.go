package deploymentconfig

import (
	"fmt"
	"time"

	appsv1 "github.com/openshift/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/polymorphichelpers"
	"k8s.io/kubectl/pkg/scheme"
)

// Log asks the server for the log of a configuration's deployment: the one of a version, or the latest where that is 0. What is no
// DeploymentConfig is left to others.
func Log(version int64, others polymorphichelpers.LogsForObjectFunc) polymorphichelpers.LogsForObjectFunc {
	return func(getter genericclioptions.RESTClientGetter, object, options runtime.Object, timeout time.Duration, all bool) (map[corev1.ObjectReference]rest.ResponseWrapper, error) {
		dc, ok := object.(*appsv1.DeploymentConfig)
		if !ok && version != 0 {
			return nil, fmt.Errorf("read log: only deployment configs have versions; leave out --version")
		}
		if !ok {
			return others(getter, object, options, timeout, all)
		}
		of, ok := options.(*corev1.PodLogOptions)
		if !ok {
			return nil, fmt.Errorf("read log of deployment config %q: options are a %T", dc.Name, options)
		}
		client, err := connect(getter)
		if err != nil {
			return nil, err
		}
		request := client.apps.RESTClient().Get().Namespace(dc.Namespace).Resource("deploymentconfigs").Name(dc.Name).SubResource("log").
			VersionedParams(logOptions(of, version), scheme.ParameterCodec)
		reference := corev1.ObjectReference{APIVersion: appsv1.GroupVersion.String(), Kind: "DeploymentConfig", Namespace: dc.Namespace, Name: dc.Name}
		return map[corev1.ObjectReference]rest.ResponseWrapper{reference: request}, nil
	}
}

// logOptions are those of a pod's log for a deployment's.
func logOptions(of *corev1.PodLogOptions, version int64) *appsv1.DeploymentLogOptions {
	options := &appsv1.DeploymentLogOptions{
		Container: of.Container, Follow: of.Follow, Previous: of.Previous, SinceSeconds: of.SinceSeconds, SinceTime: of.SinceTime,
		Timestamps: of.Timestamps, TailLines: of.TailLines, LimitBytes: of.LimitBytes,
	}
	if version != 0 {
		options.Version = &version
	}
	return options
}
