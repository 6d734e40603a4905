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
)

// Where things are in the pod of a build, and in its image.
const (
	work       = "/var/lib/slipway-builder"
	cache      = "/var/cache/slipway-builder"
	secrets    = "/var/run/secrets/openshift.io"
	configMaps = "/var/run/configs/openshift.io"
	runc       = "/usr/bin/runc"
	authority  = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"
	terminated = "/dev/termination-log"
	resolvers  = "/etc/resolv.conf"
)

// Main is the program of a build's pod. It ends the process: with 1 when the build failed. With the argument confine it only closes the addresses of the node's link in the
// network of the pod, in which another builder runs then.
func Main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	// What the engine logs beside its progress is for those who work on it.
	logrus.SetOutput(io.Discard)
	task := build
	if slices.Equal(os.Args[1:], []string{"confine"}) {
		task = closeNode
	}
	if err := task(ctx); err != nil {
		line, _, _ := strings.Cut(err.Error(), "\n")
		_ = os.WriteFile(terminated, []byte(line+"\n"), 0o600) // the Build says it too
		os.Exit(1)
	}
}

// closeNode is all that this program does for a custom builder, which has no right to it.
func closeNode(context.Context) error {
	err := closeAddresses(resolvers)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
	}
	return err
}

func build(ctx context.Context) error {
	build, err := readBuild(os.Getenv("BUILD"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return err
	}
	if err := confine(resolvers); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return err
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	client, err := buildclient.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	b := &Builder{
		Build: build, Report: reporter{client}.report,
		Work: work, Cache: cache, Secrets: secrets, ConfigMaps: configMaps, Runc: runc, Authority: authority,
		Limit: source.NewLimit(), Git: source.Git{Forbidden: source.Own}, Variable: os.Getenv, In: os.Stdin, Out: os.Stdout,
	}
	return b.Run(ctx)
}

// readBuild reads the Build that the pod was given.
func readBuild(text string) (*buildv1.Build, error) {
	build := &buildv1.Build{}
	if text == "" {
		return nil, errors.New("read build: the variable BUILD is not set; this program runs in the pods of builds")
	}
	if err := json.Unmarshal([]byte(text), build); err != nil {
		return nil, fmt.Errorf("read build from the variable BUILD: %w", err)
	}
	return build, nil
}

// reporter stores details of builds.
type reporter struct{ client buildclient.BuildsGetter }

// report stores those of one, and tries again while the API server does not answer.
func (r reporter) report(ctx context.Context, build *buildv1.Build) error {
	details := build.DeepCopy()
	details.ResourceVersion = ""
	patience := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Steps: 6, Jitter: 0.1}
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, patience, func(ctx context.Context) (bool, error) {
		_, last = r.client.Builds(build.Namespace).UpdateDetails(ctx, build.Name, details, metav1.UpdateOptions{})
		final := apierrors.IsNotFound(last) || apierrors.IsForbidden(last) || apierrors.IsInvalid(last)
		return last == nil || final, nil
	})
	if err == nil {
		err = last
	}
	return err
}
