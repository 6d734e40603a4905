package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	buildv1 "github.com/openshift/api/build/v1"
	buildclient "github.com/openshift/client-go/build/clientset/versioned/typed/build/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/internal/payload"
	"github.com/slipway-platform/slipway/test/bench/host"
)

const (
	buildProject = "default"
	// The source consists of buildFiles files of buildFileSize bytes each. The base image's layer
	// contains layerSize random bytes.
	buildFiles, buildFileSize, layerSize = 200, 16 << 10, 24 << 20
	startedBuilds, triggeredBuilds       = 5, 5
	// maxCold and maxCached are the maximum ratios of a build's time to buildah's time. maxStart
	// and maxTrigger are in seconds.
	maxCold, maxCached   = 0.75, 1.5
	maxStart, maxTrigger = 3.0, 1.0
	// inPods and beside are prefixes of image references. inPods contains the registry's address
	// for pods, and beside contains its address for this machine.
	inPods, beside = "docker-registry.default.svc:5000/" + buildProject, host.Address + ":5000/" + buildProject
)

// buildDockerfile is the Dockerfile for both sides. It copies files, and its steps read and write
// them.
const buildDockerfile = `ARG BASE=%s/base:latest
FROM $BASE
COPY src /src
RUN tar -cf - src | gzip -c >/src.tar.gz
RUN for i in 1 2 3 4 5 6 7 8; do sha256sum /src/*; done >/sums
RUN dd if=/dev/zero of=/zeros bs=1M count=64
`

// buildTimes contains the times of one kind of build.
type buildTimes struct {
	// slipway is the duration of `oc start-build --wait`. inside is the total duration of the
	// stages that the build reports, from the source to the pushed image.
	slipway, inside, buildah []time.Duration
}

// builds contains the build measurements.
type builds struct {
	cold, warm         buildTimes
	started, triggered []time.Duration
}

// buildFixture is a cluster in which builds are measured. buildah runs next to the cluster and also
// pushes to the cluster's registry.
type buildFixture struct {
	*cluster
	host       *host.Host
	kubeconfig string // the administrator's kubeconfig
	work       string // the directory of the source
	oc         string
	runc       string
	builds     *buildclient.BuildV1Client
	token      string // token of the account that runs builds
	base       string // reference of the base image in the registry
	result     *builds
}

// measureBuilds boots a separate cluster, measures it and removes it.
func measureBuilds(ctx context.Context, dir string, o options) (*builds, error) {
	program, err := filepath.Abs(o.slipway)
	if err != nil {
		return nil, err
	}
	programs, err := payload.Unpack(filepath.Join(dir, "programs"))
	if err != nil {
		return nil, err
	}
	y := &buildFixture{work: filepath.Join(dir, "work"), oc: filepath.Join(filepath.Dir(program), "oc"), runc: programs.Runc, result: &builds{}}
	return y.result, onSlipway(ctx, filepath.Join(dir, "builds"), "/slipway-bench-builds", program, "", func(c *cluster, s *slipway) error {
		y.cluster, y.host, y.kubeconfig = c, s.host, s.data("admin.kubeconfig")
		config, err := hostConfig(s.host, y.kubeconfig)
		if err != nil {
			return err
		}
		if y.builds, err = buildclient.NewForConfig(config); err != nil {
			return err
		}
		return y.measure(ctx, o.rounds)
	})
}

func (y *buildFixture) measure(ctx context.Context, rounds int) error {
	if err := y.prepare(ctx); err != nil {
		return err
	}
	for i := range rounds {
		config := fmt.Sprintf("app-%d", i)
		if err := errors.Join(y.forget(ctx, config), y.round(ctx, config, &y.result.cold), y.round(ctx, config, &y.result.warm)); err != nil {
			return err
		}
	}
	if err := y.measureStart(ctx); err != nil {
		return fmt.Errorf("start builds: %w", err)
	}
	return y.measureTriggers(ctx)
}

// prepare writes the source and the base image.
func (y *buildFixture) prepare(ctx context.Context) error {
	noise := rand.NewChaCha8([32]byte{}) // a fixed seed, so that every run uses the same data
	content := make([]byte, buildFileSize)
	if err := os.MkdirAll(filepath.Join(y.work, "src"), 0o755); err != nil {
		return err
	}
	for i := range buildFiles {
		_, _ = noise.Read(content) // The random source never ends, so Read returns no error.
		if err := os.WriteFile(filepath.Join(y.work, "src", fmt.Sprint(i)), content, 0o644); err != nil {
			return err
		}
	}
	if err := y.pushBase(ctx, noise); err != nil {
		return fmt.Errorf("push base image: %w", err)
	}
	return os.WriteFile(filepath.Join(y.work, "Dockerfile"), fmt.Appendf(nil, buildDockerfile, inPods), 0o644)
}

// forget prepares a cold build: it creates an empty image stream and a new build configuration with
// the given name, and empties buildah's storage.
func (y *buildFixture) forget(ctx context.Context, config string) error {
	for _, args := range [][]string{
		{"create", "imagestream", config}, {"new-build", "--name=" + config, "--binary", "--strategy=docker", "--to=" + config + ":ours"},
	} {
		if _, err := y.run(ctx, args...); err != nil {
			return err
		}
	}
	_, err := y.buildah(ctx, "rmi", "--all", "--force")
	return err
}

// run runs oc in the builds' namespace.
func (y *buildFixture) run(ctx context.Context, args ...string) (string, error) {
	return y.command(ctx, y.oc, append(args, "--namespace="+buildProject, "--kubeconfig="+y.kubeconfig)...)
}

// command runs a program on the cluster's machine, outside the cluster, and returns its output.
func (y *buildFixture) command(ctx context.Context, program string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, program, args...)
	command.Env = append(os.Environ(), "HOME="+y.host.Dir, "REGISTRY_AUTH_FILE="+y.host.Path("auth.json"))
	var output strings.Builder
	command.Stdout, command.Stderr = &output, &output
	err := y.host.Start(command)
	if err == nil {
		err = command.Wait()
	}
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", filepath.Base(program), args[0], err, output.String())
	}
	return output.String(), nil
}

// round runs one build on each side, slipway first.
func (y *buildFixture) round(ctx context.Context, config string, into *buildTimes) error {
	start := time.Now()
	if _, err := y.run(ctx, "start-build", config, "--from-dir="+y.work, "--wait"); err != nil {
		return err
	}
	into.slipway = append(into.slipway, time.Since(start))
	result, err := y.builds.BuildConfigs(buildProject).Get(ctx, config, metav1.GetOptions{})
	if err != nil {
		return err
	}
	build, err := y.builds.Builds(buildProject).Get(ctx, fmt.Sprintf("%s-%d", config, result.Status.LastVersion), metav1.GetOptions{})
	if err != nil {
		return err
	}
	into.inside = append(into.inside, inside(build))
	start = time.Now()
	image := beside + "/" + config + ":buildah"
	if _, err := y.buildah(ctx, "bud", "--tls-verify=false", "--isolation=oci", "--runtime="+y.runc, "--layers",
		"--build-arg=BASE="+y.base, "--tag="+image, y.work); err != nil {
		return err
	}
	if _, err := y.buildah(ctx, "push", "--tls-verify=false", image); err != nil {
		return err
	}
	into.buildah = append(into.buildah, time.Since(start))
	return nil
}

// inside returns the total duration of a build's stages.
func inside(build *buildv1.Build) (sum time.Duration) {
	for _, stage := range build.Status.Stages {
		sum += time.Duration(stage.DurationMilliseconds) * time.Millisecond
	}
	return sum
}

// buildah runs buildah with a separate storage directory.
func (y *buildFixture) buildah(ctx context.Context, args ...string) (string, error) {
	return y.command(ctx, "buildah", append([]string{"--root=" + y.host.Path("buildah"), "--runroot=" + y.host.Path("buildah-run"), "--storage-driver=overlay"}, args...)...)
}
