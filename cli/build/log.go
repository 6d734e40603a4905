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

	"github.com/slipway-platform/slipway/apigroup/build/generate"
)

// logRequest asks for the log of a build.
func (c *Client) logRequest(name string, options *buildv1.BuildLogOptions) *rest.Request {
	return c.RESTClient().Get().Namespace(c.Namespace).Resource("builds").Name(name).SubResource("log").VersionedParams(options, scheme.ParameterCodec)
}

// Follow writes the log of a build while it runs. It waits for a build that has to wait.
func (c *Client) Follow(ctx context.Context, name string, out io.Writer) error {
	for {
		if err := c.write(ctx, name, &buildv1.BuildLogOptions{Follow: true}, out); !apierrors.IsTimeout(err) {
			return err
		}
	}
}

// Written writes what a build has logged so far.
func (c *Client) Written(ctx context.Context, name string, out io.Writer) error {
	return c.write(ctx, name, &buildv1.BuildLogOptions{NoWait: true}, out)
}

func (c *Client) write(ctx context.Context, name string, options *buildv1.BuildLogOptions, out io.Writer) error {
	log, err := c.logRequest(name, options).Stream(ctx)
	if err != nil {
		return fmt.Errorf("read log of build %q: %w", name, err)
	}
	defer func() { _ = log.Close() }()
	_, err = io.Copy(out, log)
	return err
}

// Log asks the server for the log of a build: one that is named, or that of a configuration with a number, or its latest where that is 0. What is neither
// is left to others.
func Log(version int64, others polymorphichelpers.LogsForObjectFunc) polymorphichelpers.LogsForObjectFunc {
	return func(getter genericclioptions.RESTClientGetter, object, options runtime.Object, timeout time.Duration, all bool) (map[corev1.ObjectReference]rest.ResponseWrapper, error) {
		reference := corev1.ObjectReference{APIVersion: buildv1.GroupVersion.String()}
		switch of := object.(type) {
		case *buildv1.Build:
			reference.Kind, reference.Namespace, reference.Name = "Build", of.Namespace, of.Name
			if version != 0 {
				return nil, fmt.Errorf("read log of build %q: --version is for build configs, whose builds have numbers", of.Name)
			}
		case *buildv1.BuildConfig:
			reference.Kind, reference.Namespace, reference.Name = "BuildConfig", of.Namespace, of.Name
		default:
			return others(getter, object, options, timeout, all)
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
		return map[corev1.ObjectReference]rest.ResponseWrapper{reference: client.logRequest(build, logOptions(of))}, nil
	}
}

// numbered is the build of a configuration with a number, or the latest.
func (c *Client) numbered(ctx context.Context, config string, number int64) (string, error) {
	builds, err := c.Of(ctx, config)
	if err != nil {
		return "", err
	}
	for i := range builds {
		if number == 0 || generate.Number(&builds[i]) == number {
			return builds[i].Name, nil
		}
	}
	if number != 0 {
		return "", fmt.Errorf("no build #%d found for build config %q", number, config)
	}
	return "", fmt.Errorf("no builds found for build config %q; start one with: oc start-build %[1]s", config)
}

// logOptions are those of a pod's log for a build's.
func logOptions(of *corev1.PodLogOptions) *buildv1.BuildLogOptions {
	return &buildv1.BuildLogOptions{
		Container: of.Container, Follow: of.Follow, Previous: of.Previous, SinceSeconds: of.SinceSeconds, SinceTime: of.SinceTime,
		Timestamps: of.Timestamps, TailLines: of.TailLines, LimitBytes: of.LimitBytes, NoWait: !of.Follow,
	}
}
