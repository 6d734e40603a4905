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

// logRequest returns a request for a build's log.
func (c *Client) logRequest(name string, options *buildv1.BuildLogOptions) *rest.Request {
	return c.RESTClient().Get().Namespace(c.Namespace).Resource("builds").Name(name).SubResource("log").VersionedParams(options, scheme.ParameterCodec)
}

// Follow writes a build's log to out until the build finishes. While the build is pending, Follow
// writes the reason to waiting.
func (c *Client) Follow(ctx context.Context, name string, out, waiting io.Writer) error {
	log := c.logRequest(name, &buildv1.BuildLogOptions{Follow: true})
	return write(ctx, name, &following{log, c, name, waiting}, out)
}

// following is a request for the log of a build that might not have started yet. Only its Stream
// method waits for the build to start.
type following struct {
	rest.ResponseWrapper
	client  *Client
	build   string
	waiting io.Writer
}

// Stream waits without a time limit until the build starts, and then opens the log. It retries if
// the server's own wait for the build times out.
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

// Written writes the existing log of a build to out, without waiting for more output.
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

// Log returns a function that requests a build's log. For a build config, version is the build
// number, or 0 for the latest build. fallback handles other objects. If the log is followed and the
// build has not started, the function writes the reason to waiting.
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

// numbered returns the name of the build with the given number. For 0, it returns the name of the
// latest build.
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

// logOptions converts pod log options to build log options.
func logOptions(of *corev1.PodLogOptions) *buildv1.BuildLogOptions {
	return &buildv1.BuildLogOptions{
		Container: of.Container, Follow: of.Follow, Previous: of.Previous, SinceSeconds: of.SinceSeconds, SinceTime: of.SinceTime,
		Timestamps: of.Timestamps, TailLines: of.TailLines, LimitBytes: of.LimitBytes, NoWait: !of.Follow,
	}
}
