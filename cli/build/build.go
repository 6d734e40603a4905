// Package build starts builds from a repository or from local files, follows their logs, waits for
// their completion and cancels them. Its messages match OpenShift 3.11's client.
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

// Client accesses the builds of one project.
type Client struct {
	*buildclient.BuildV1Client
	// Namespace is the project.
	Namespace string
	pods      coreclient.PodsGetter
	clock     clock.PassiveClock
}

// New returns a client for a project's builds.
func New(config *rest.Config, namespace string) (*Client, error) {
	client, err := buildclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create build client: %w", err)
	}
	core, err := coreclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create pod client: %w", err)
	}
	return &Client{client, namespace, core, clock.RealClock{}}, nil
}

// Register adds the build types to kubectl's scheme. Call it once, at the start of the process.
func Register() error {
	if err := buildv1.Install(scheme.Scheme); err != nil {
		return fmt.Errorf("register builds: %w", err)
	}
	return nil
}

// Kinds of objects that an argument can name.
const (
	OfConfig = "buildconfig"
	OfBuild  = "build"
)

// Name splits an argument such as "bc/app" or "build/app-1" into its kind and name. If the argument
// contains only a name, the kind is fallback.
func Name(arg, fallback string) (kind, name string, err error) {
	resource, name, ok := strings.Cut(arg, "/")
	if !ok {
		return fallback, arg, nil
	}
	switch strings.TrimSuffix(resource, "."+buildv1.GroupName) {
	case "bc", "buildconfig", "buildconfigs":
		return OfConfig, name, nil
	case "build", "builds":
		return OfBuild, name, nil
	}
	return "", "", fmt.Errorf("%s is neither a build config nor a build", arg)
}

// Of returns a build config's builds, newest first.
func (c *Client) Of(ctx context.Context, config string) ([]buildv1.Build, error) {
	list, err := c.Builds(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: instantiate.Selector(config).String()})
	if err != nil {
		return nil, err
	}
	builds := slices.DeleteFunc(list.Items, func(b buildv1.Build) bool { return instantiate.ConfigOf(&b) != config })
	slices.SortFunc(builds, func(a, b buildv1.Build) int { return cmp.Compare(instantiate.Number(&b), instantiate.Number(&a)) })
	return builds, nil
}

// Wait waits until a build meets a condition, and returns the build. It returns an error if the
// build is deleted.
func (c *Client) Wait(ctx context.Context, name string, condition func(*buildv1.Build) bool) (*buildv1.Build, error) {
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
		return ok && condition(build), nil
	})
	if err != nil {
		return nil, fmt.Errorf("wait for build %q: %w", name, err)
	}
	return event.Object.(*buildv1.Build), nil
}

// Complete waits until a build finishes. It returns an error unless the build succeeded.
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
