// Package build is what the client knows about builds: how they are started, from source in the
// cluster's reach or from files here, followed, waited for and cancelled. What it says is what
// OpenShift 3.11's client says.
package build

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	buildv1 "github.com/openshift/api/build/v1"
	buildclient "github.com/openshift/client-go/build/clientset/versioned/typed/build/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/kubectl/pkg/scheme"
	"k8s.io/utils/clock"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
)

// Client works on the builds of one project.
type Client struct {
	*buildclient.BuildV1Client
	// Namespace is the project.
	Namespace string
	pods      coreclient.PodsGetter
	clock     clock.PassiveClock
}

// New connects to the builds of a project.
func New(config *rest.Config, namespace string) (*Client, error) {
	client, err := buildclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to builds: %w", err)
	}
	core, err := coreclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the pods of builds: %w", err)
	}
	return &Client{client, namespace, core, clock.RealClock{}}, nil
}

// Teach registers the kinds of builds with kubectl. It is for the start of a process.
func Teach() error {
	if err := buildv1.Install(scheme.Scheme); err != nil {
		return fmt.Errorf("register builds: %w", err)
	}
	return nil
}

// Kinds that an argument may be about.
const (
	OfConfig = "buildconfig"
	OfBuild  = "build"
)

// Name divides an argument such as "bc/app" or "build/app-1" into kind and name; otherwise is the
// kind of one that is only a name.
func Name(arg, otherwise string) (kind, name string, err error) {
	resource, name, found := strings.Cut(arg, "/")
	if !found {
		return otherwise, arg, nil
	}
	switch strings.TrimSuffix(resource, "."+buildv1.GroupName) {
	case "bc", "buildconfig", "buildconfigs":
		return OfConfig, name, nil
	case "build", "builds":
		return OfBuild, name, nil
	}
	return "", "", fmt.Errorf("%s is neither a build config nor a build", arg)
}

// Of are the builds of a configuration, the newest first.
func (c *Client) Of(ctx context.Context, config string) ([]buildv1.Build, error) {
	found, err := c.Builds(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: instantiate.Selector(config).String()})
	if err != nil {
		return nil, err
	}
	builds := slices.DeleteFunc(found.Items, func(b buildv1.Build) bool { return instantiate.ConfigOf(&b) != config })
	slices.SortFunc(builds, func(a, b buildv1.Build) int { return cmp.Compare(instantiate.Number(&b), instantiate.Number(&a)) })
	return builds, nil
}

// Wait waits until a build is as wanted.
func (c *Client) Wait(ctx context.Context, name string, wanted func(*buildv1.Build) bool) (*buildv1.Build, error) {
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = only
			return c.Builds(c.Namespace).List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = only
			return c.Builds(c.Namespace).Watch(ctx, options)
		},
	}
	event, err := watchtools.UntilWithSync(ctx, source, &buildv1.Build{}, nil, func(event watch.Event) (bool, error) {
		if event.Type == watch.Deleted {
			return false, fmt.Errorf("build %q was deleted", name)
		}
		build, ok := event.Object.(*buildv1.Build)
		return ok && wanted(build), nil
	})
	if err != nil {
		return nil, fmt.Errorf("wait for build %q: %w", name, err)
	}
	return event.Object.(*buildv1.Build), nil
}

// Complete waits until a build has ended; one that did not succeed is an error that says why.
func (c *Client) Complete(ctx context.Context, name string) error {
	build, err := c.Wait(ctx, name, instantiate.Ended)
	if err != nil {
		return err
	}
	if build.Status.Phase != buildv1.BuildPhaseComplete {
		return fmt.Errorf("the build %s/%s status is %q", build.Namespace, build.Name, build.Status.Phase)
	}
	return nil
}
