package builder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	buildv1 "github.com/openshift/api/build/v1"
	buildclient "github.com/openshift/client-go/build/clientset/versioned/typed/build/v1"
	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/builder/source"
	"github.com/slipway-platform/slipway/internal/buildpod"
)

// Files that Kubernetes creates in each container.
const (
	authority      = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"
	terminationLog = "/dev/termination-log"
	resolvConf     = "/etc/resolv.conf"
)

// Main is the main function of the builder. It exits with status 1 if the build fails. With the
// argument buildpod.ConfineArgument, it only blocks link-local addresses in the pod's network
// namespace, before the container of a custom builder starts. With buildpod.FetchArgument, it only
// fetches the source of a pipeline.
func Main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	// Discard the engine's log, which is only useful to developers. It does not contain the build
	// progress.
	logrus.SetOutput(io.Discard)
	run := build
	switch {
	case slices.Equal(os.Args[1:], []string{buildpod.ConfineArgument}):
		run = blockLinkLocal
	case slices.Equal(os.Args[1:], []string{buildpod.FetchArgument}):
		run = fetchSource
	}
	if err := run(ctx); err != nil {
		line, _, _ := strings.Cut(err.Error(), "\n")
		// Ignore errors, because the Build also contains the message.
		_ = os.WriteFile(terminationLog, []byte(line+"\n"), 0o600)
		os.Exit(1)
	}
}

// blockLinkLocal blocks link-local addresses before a custom builder starts, because the custom
// builder does not have permission to do so.
func blockLinkLocal(context.Context) error {
	err := blockAddresses(resolvConf)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
	}
	return err
}

func build(ctx context.Context) error {
	build, err := readBuild(os.Getenv(buildpod.BuildVariable))
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return err
	}
	if err := confine(resolvConf); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return err
	}
	b, err := newBuilder(build)
	if err != nil {
		return err
	}
	return b.Run(ctx)
}

// fetchSource only fetches the source of a pipeline. If fetchSource is killed, the next attempt
// starts over.
func fetchSource(ctx context.Context) error {
	build, err := readBuild(os.Getenv(buildpod.BuildVariable))
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return err
	}
	b, err := newBuilder(build)
	if err != nil {
		return err
	}
	return b.Fetch(ctx)
}

// newBuilder returns a builder that uses the pod's paths and service account.
func newBuilder(build *buildv1.Build) (*Builder, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	client, err := buildclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return &Builder{
		Build: build, Report: reporter{client}.report,
		Work: buildpod.WorkDir, Cache: buildpod.CacheDir, Secrets: buildpod.SecretsDir, ConfigMaps: buildpod.ConfigMapsDir,
		Runc: buildpod.Runc, Authority: authority,
		Limit: source.NewLimit(), Git: source.Git{Forbidden: source.LocalAddress}, Variable: os.Getenv, In: os.Stdin, Out: os.Stdout,
	}, nil
}

// readBuild decodes the Build, which text contains as JSON.
func readBuild(text string) (*buildv1.Build, error) {
	build := &buildv1.Build{}
	if text == "" {
		return nil, errors.New("read build: the variable BUILD is not set: run this program only in the pod of a build")
	}
	if err := json.Unmarshal([]byte(text), build); err != nil {
		return nil, fmt.Errorf("read build from the variable BUILD: %w", err)
	}
	return build, nil
}

// reporter stores build details in Builds.
type reporter struct{ client buildclient.BuildsGetter }

// report stores a build's details. It retries while the API server does not respond.
func (r reporter) report(ctx context.Context, build *buildv1.Build) error {
	details := build.DeepCopy()
	details.ResourceVersion = ""
	backoff := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Steps: 6, Jitter: 0.1}
	var lastErr error
	err := wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) {
		_, lastErr = r.client.Builds(build.Namespace).UpdateDetails(ctx, build.Name, details, metav1.UpdateOptions{})
		final := apierrors.IsNotFound(lastErr) || apierrors.IsForbidden(lastErr) || apierrors.IsInvalid(lastErr)
		return lastErr == nil || final, nil
	})
	if err == nil {
		err = lastErr
	}
	return err
}
