package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/bench/host"
)

// pushBase pushes an image that contains a shell and as much random data as a small Linux
// distribution contains.
func (y *buildFixture) pushBase(ctx context.Context, noise io.Reader) error {
	token, err := y.run(ctx, "create", "token", "builder", "--duration=2h")
	if err != nil {
		return err
	}
	y.token, y.base = strings.TrimSpace(token), beside+"/base:latest"
	login := base64.StdEncoding.EncodeToString([]byte("any:" + y.token))
	// Pass the password to buildah in a file, because every user can read a process's arguments.
	file := fmt.Appendf(nil, `{"auths": {"%s:5000": {"auth": %q}}}`, host.Address, login)
	if err := os.WriteFile(y.host.Path("auth.json"), file, 0o600); err != nil {
		return err
	}
	content, err := baseLayer(noise)
	if err != nil {
		return err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
	if err != nil {
		return err
	}
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{Architecture: "amd64", OS: "linux", Config: v1.Config{Env: []string{"PATH=/bin"}}})
	if err == nil {
		image, err = mutate.AppendLayers(image, layer)
	}
	if err != nil {
		return err
	}
	return y.push(ctx, image)
}

// baseLayer returns a tar archive that contains busybox, its applets, and random data.
func baseLayer(noise io.Reader) ([]byte, error) {
	program, err := os.ReadFile("/bin/busybox")
	if err != nil {
		return nil, err
	}
	var buffer bytes.Buffer
	archive := tar.NewWriter(&buffer)
	add := func(header tar.Header, content io.Reader) {
		if err == nil {
			err = archive.WriteHeader(&header)
		}
		if err == nil {
			_, err = io.CopyN(archive, content, header.Size)
		}
	}
	add(tar.Header{Name: "bin/busybox", Mode: 0o755, Size: int64(len(program))}, bytes.NewReader(program))
	for _, applet := range []string{"sh", "tar", "gzip", "sha256sum", "dd"} {
		add(tar.Header{Name: "bin/" + applet, Typeflag: tar.TypeSymlink, Linkname: "busybox"}, noise)
	}
	add(tar.Header{Name: "usr/noise", Mode: 0o644, Size: layerSize}, noise)
	if err == nil {
		err = archive.Close()
	}
	return buffer.Bytes(), err
}

// options returns the options for requests to the registry. They trust every certificate, because
// requests stay in the cluster's network.
func (y *buildFixture) options(ctx context.Context) []remote.Option {
	return []remote.Option{
		remote.WithContext(ctx), remote.WithAuth(&authn.Basic{Username: "any", Password: y.token}),
		remote.WithTransport(&http.Transport{
			DialContext:     func(ctx context.Context, network, to string) (net.Conn, error) { return y.host.Dial(ctx, network, to) },
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		}),
	}
}

// push pushes an image to the base image's tag.
func (y *buildFixture) push(ctx context.Context, image v1.Image) error {
	reference, err := name.ParseReference(y.base)
	if err != nil {
		return err
	}
	return remote.Write(reference, image, y.options(ctx)...)
}

// await calls do and measures the time until a new build meets a condition.
func (y *buildFixture) await(ctx context.Context, do func() error, isWanted func(*buildv1.Build) bool) (took time.Duration, err error) {
	list, err := y.builds.Builds(buildProject).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	events, err := y.builds.Builds(buildProject).Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return 0, err
	}
	defer events.Stop()
	start := time.Now()
	if err := do(); err != nil {
		return 0, err
	}
	seen := false
	for {
		select {
		case event, open := <-events.ResultChan():
			if !open {
				return 0, fmt.Errorf("watch builds: the watch ended")
			}
			build, ok := event.Object.(*buildv1.Build)
			if ok && !seen && isWanted(build) {
				seen, took = true, time.Since(start)
			}
			// Wait for the build to complete, so that it does not disturb the next build.
			if ok && seen && build.Status.CompletionTimestamp != nil {
				return took, nil
			}
		case <-ctx.Done():
			return 0, fmt.Errorf("wait for a build: %w", context.Cause(ctx))
		}
	}
}

// configure creates a build configuration whose Dockerfile has only a FROM instruction.
func (y *buildFixture) configure(ctx context.Context, name string, triggers ...buildv1.BuildTriggerPolicy) error {
	config, dockerfile := &buildv1.BuildConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}, "FROM scratch"
	config.Spec.Source.Dockerfile, config.Spec.Triggers = &dockerfile, triggers
	config.Spec.Strategy.DockerStrategy = &buildv1.DockerBuildStrategy{From: &corev1.ObjectReference{Kind: "ImageStreamTag", Name: "base:latest"}}
	_, err := y.builds.BuildConfigs(buildProject).Create(ctx, config, metav1.CreateOptions{})
	return err
}

// measureStart measures the time from the request for a build until the build's pod is running.
func (y *buildFixture) measureStart(ctx context.Context) error {
	const name = "started"
	if err := y.configure(ctx, name); err != nil {
		return err
	}
	for range startedBuilds {
		took, err := y.await(ctx, func() error {
			_, err := y.builds.BuildConfigs(buildProject).Instantiate(ctx, name, &buildv1.BuildRequest{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			return err
		}, func(build *buildv1.Build) bool { return build.Status.Phase == buildv1.BuildPhaseRunning })
		if err != nil {
			return err
		}
		y.result.started = append(y.result.started, took)
	}
	return nil
}

// measureTriggers pushes a base image whose layers the registry already has. It measures the time
// from the start of the push until the push triggers a build.
func (y *buildFixture) measureTriggers(ctx context.Context) error {
	reference, err := name.ParseReference(y.base)
	if err != nil {
		return err
	}
	image, err := remote.Image(reference, y.options(ctx)...)
	if err != nil {
		return fmt.Errorf("read base image: %w", err)
	}
	always := func(*buildv1.Build) bool { return true }
	trigger := buildv1.BuildTriggerPolicy{Type: buildv1.ImageChangeBuildTriggerType, ImageChange: &buildv1.ImageChangeTrigger{}}
	// The first build uses the existing base image.
	if _, err := y.await(ctx, func() error { return y.configure(ctx, "triggered", trigger) }, always); err != nil {
		return err
	}
	for i := range triggeredBuilds {
		file, err := image.ConfigFile()
		if err != nil {
			return err
		}
		file = file.DeepCopy()
		file.Config.Labels = map[string]string{"change": fmt.Sprint(i)}
		changed, err := mutate.ConfigFile(image, file)
		if err != nil {
			return err
		}
		took, err := y.await(ctx, func() error { return y.push(ctx, changed) }, always)
		if err != nil {
			return fmt.Errorf("push a base image: %w", err)
		}
		y.result.triggered = append(y.result.triggered, took)
	}
	return nil
}
