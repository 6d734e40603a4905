package build

import (
	"context"
	"fmt"
	"io"
	"time"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/polymorphichelpers"
	"k8s.io/kubectl/pkg/scheme"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
)

// logRequest returns a request for the log of a build.
func (c *Client) logRequest(name string, options *buildv1.BuildLogOptions) *rest.Request {
	return c.RESTClient().Get().Namespace(c.Namespace).Resource("builds").Name(name).SubResource("log").VersionedParams(options, scheme.ParameterCodec)
}

// Follow writes the log of a build to out until the build ends. While the build waits to start, it
// writes the reason to waiting.
func (c *Client) Follow(ctx context.Context, name string, out, waiting io.Writer) error {
	log := c.logRequest(name, &buildv1.BuildLogOptions{Follow: true})
	return write(ctx, name, &following{log, c, name, waiting}, out)
}

// following reads the log of a build that might not have started. Only Stream waits until the build
// starts.
type following struct {
	rest.ResponseWrapper
	client  *Client
	build   string
	waiting io.Writer
}

// Stream waits without a time limit until the build starts, and then opens the log. It retries when
// the server's own wait times out.
func (f *following) Stream(ctx context.Context) (io.ReadCloser, error) {
	for {
		if err := f.client.Begin(ctx, f.build, f.waiting); err != nil {
			return nil, err
		}
		if log, err := f.ResponseWrapper.Stream(ctx); !apierrors.IsTimeout(err) {
			return log, err
		}
	}
}

// Written writes the log that a build has written so far.
func (c *Client) Written(ctx context.Context, name string, out io.Writer) error {
	return write(ctx, name, c.logRequest(name, &buildv1.BuildLogOptions{NoWait: true}), out)
}

func write(ctx context.Context, name string, source rest.ResponseWrapper, out io.Writer) error {
	log, err := source.Stream(ctx)
	if err != nil {
		return fmt.Errorf("read log of build %q: %w", name, err)
	}
	defer func() { _ = log.Close() }()
	_, err = io.Copy(out, log)
	return err
}

// Log returns a function that requests the log of a build. For a build config, version is the
// number of the build, or 0 for the latest one. fallback handles other objects. If the log is
// followed and the build has not started, the function writes the reason to waiting.
func Log(version int64, waiting io.Writer, fallback polymorphichelpers.LogsForObjectFunc) polymorphichelpers.LogsForObjectFunc {
	return func(getter genericclioptions.RESTClientGetter, object, options runtime.Object, timeout time.Duration, all bool) (map[corev1.ObjectReference]rest.ResponseWrapper, error) {
		reference := corev1.ObjectReference{APIVersion: buildv1.GroupVersion.String()}
		switch of := object.(type) {
		case *buildv1.Build:
			reference.Kind, reference.Namespace, reference.Name = "Build", of.Namespace, of.Name
			if version != 0 {
				return nil, fmt.Errorf("read log of build %q: --version is only for build configs, whose builds have numbers", of.Name)
			}
		case *buildv1.BuildConfig:
			reference.Kind, reference.Namespace, reference.Name = "BuildConfig", of.Namespace, of.Name
		default:
			return fallback(getter, object, options, timeout, all)
		}
		of, ok := options.(*corev1.PodLogOptions)
		if !ok {
			return nil, fmt.Errorf("read log of %q: options are a %T", reference.Name, options)
		}
		config, err := getter.ToRESTConfig()
		if err != nil {
			return nil, err
		}
		client, err := New(config, reference.Namespace)
		if err != nil {
			return nil, err
		}
		build := reference.Name
		if reference.Kind == "BuildConfig" {
			if build, err = client.numbered(context.Background(), build, version); err != nil {
				return nil, err
			}
		}
		var log rest.ResponseWrapper = client.logRequest(build, logOptions(of))
		if of.Follow && !of.Previous {
			log = &following{log, client, build, waiting}
		}
		return map[corev1.ObjectReference]rest.ResponseWrapper{reference: log}, nil
	}
}

// numbered returns the name of the build with a number, or for 0 of the latest build.
func (c *Client) numbered(ctx context.Context, config string, number int64) (string, error) {
	builds, err := c.Of(ctx, config)
	if err != nil {
		return "", err
	}
	for i := range builds {
		if number == 0 || instantiate.Number(&builds[i]) == number {
			return builds[i].Name, nil
		}
	}
	if number != 0 {
		return "", fmt.Errorf("no build #%d found for build config %q", number, config)
	}
	return "", fmt.Errorf("no builds found for build config %q; start one with: oc start-build %[1]s", config)
}

// logOptions converts the log options of a pod to log options of a build.
func logOptions(of *corev1.PodLogOptions) *buildv1.BuildLogOptions {
	return &buildv1.BuildLogOptions{
		Container: of.Container, Follow: of.Follow, Previous: of.Previous, SinceSeconds: of.SinceSeconds, SinceTime: of.SinceTime,
		Timestamps: of.Timestamps, TailLines: of.TailLines, LimitBytes: of.LimitBytes, NoWait: !of.Follow,
	}
}
