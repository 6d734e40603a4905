package deploymentconfig

import (
	"context"
	"fmt"
	"io"
	"time"

	appsv1 "github.com/openshift/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/polymorphichelpers"
	"k8s.io/kubectl/pkg/scheme"
)

// Log returns a function that requests a deployment's log. version is the version of the deployment
// config, or 0 for the latest version. fallback handles other objects.
func Log(version int64, fallback polymorphichelpers.LogsForObjectFunc) polymorphichelpers.LogsForObjectFunc {
	return func(getter genericclioptions.RESTClientGetter, object, options runtime.Object, timeout time.Duration, all bool) (map[corev1.ObjectReference]rest.ResponseWrapper, error) {
		dc, ok := object.(*appsv1.DeploymentConfig)
		if !ok && version != 0 {
			return nil, fmt.Errorf("read log: only deployment configs have versions; omit --version")
		}
		if !ok {
			return fallback(getter, object, options, timeout, all)
		}
		of, ok := options.(*corev1.PodLogOptions)
		if !ok {
			return nil, fmt.Errorf("read log of deployment config %q: options are a %T", dc.Name, options)
		}
		client, err := connect(getter)
		if err != nil {
			return nil, err
		}
		request := client.log(dc.Namespace, dc.Name, logOptions(of, version))
		reference := corev1.ObjectReference{APIVersion: appsv1.GroupVersion.String(), Kind: "DeploymentConfig", Namespace: dc.Namespace, Name: dc.Name}
		return map[corev1.ObjectReference]rest.ResponseWrapper{reference: request}, nil
	}
}

// Follow writes the log of a deployment config's deployment to out until the log ends.
func (c *Client) Follow(ctx context.Context, namespace, name string, version int64, out io.Writer) error {
	log, err := c.log(namespace, name, &appsv1.DeploymentLogOptions{Follow: true, Version: &version}).Stream(ctx)
	if err != nil {
		return fmt.Errorf("follow deployment #%d of %q: %w", version, name, err)
	}
	defer log.Close()
	_, err = io.Copy(out, log)
	return err
}

// log returns a request for the log of a deployment config's deployment.
func (c *Client) log(namespace, name string, options *appsv1.DeploymentLogOptions) *rest.Request {
	return c.apps.RESTClient().Get().Namespace(namespace).Resource("deploymentconfigs").Name(name).SubResource("log").
		VersionedParams(options, scheme.ParameterCodec)
}

// logOptions converts pod log options to deployment log options.
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
