package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/sync/errgroup"
)

const (
	registryLayers = 4        // of the image that is pushed and pulled, all at once
	registryLayer  = 32 << 20 // bytes of each
	registryReads  = 1000     // of one manifest, all at once
	leastRegistry  = 0.95     // of the throughput of the distribution's package
)

// registryRound is what one registry did in one round.
type registryRound struct {
	push, pull float64 // MiB in a second
	reads      float64 // manifests in a second
	peak       float64 // the most memory that the process ever had, in bytes
}

// registrySide is a registry that is measured: ours without a cluster, or the one of the distribution's package docker-registry.
type registrySide struct {
	program   string
	arguments []string // before the file of the configuration
	rounds    []registryRound
}

// runRegistry measures both registries in turns, each with an empty directory on the same disk and the same configuration, prints and writes it.
func runRegistry(ctx context.Context, o options) error {
	stock, err := exec.LookPath("docker-registry")
	if err != nil {
		return errors.New("find the stock registry: run: apt-get install docker-registry; systemctl disable --now docker-registry")
	}
	machine, started := describeMachine(), time.Now()
	image, err := random.Image(registryLayer, registryLayers)
	if err != nil {
		return fmt.Errorf("make image: %w", err)
	}
	sides := []*registrySide{{program: o.slipway, arguments: []string{"registry"}}, {program: stock, arguments: []string{"serve"}}}
	for range o.rounds {
		for _, side := range sides {
			result, err := side.measure(ctx, image)
			if err != nil {
				return fmt.Errorf("measure registry %s: %w", side.program, err)
			}
			side.rounds = append(side.rounds, result)
		}
	}
	conditions := fmt.Sprintf("%s.\n%s; medians of %d rounds, an image of %d layers with %d MiB each.\n",
		machine, started.UTC().Format("2006-01-02 15:04 MST"), o.rounds, registryLayers, registryLayer>>20)
	compared := compareRegistries(sides[0].rounds, sides[1].rounds)
	fmt.Print("\n" + conditions + "\n" + compared.text())
	if o.markdown == "" {
		return nil
	}
	return registrySection.Write(o.markdown, conditions+"\n"+compared.markdown())
}

// compareRegistries is the table of both.
func compareRegistries(own, stock []registryRound) table {
	t := table{heading: []string{"registry", "Slipway", "docker-registry", "ratio", "aim", ""}}
	row := func(name string, of func(registryRound) float64, print func(float64) string, least float64) {
		var values [2][]float64
		for which, rounds := range [][]registryRound{own, stock} {
			for _, r := range rounds {
				values[which] = append(values[which], of(r))
			}
		}
		a, b := median(values[0]), median(values[1])
		cells := []string{name, print(a), print(b), fmt.Sprintf("%.2f", a/b), "", ""}
		if least > 0 {
			cells[4], cells[5] = fmt.Sprintf(">= %.2f", least), outcome(a/b >= least)
		}
		t.rows = append(t.rows, cells)
	}
	throughput := func(v float64) string { return fmt.Sprintf("%.0f MiB/s", v) }
	row("push", func(r registryRound) float64 { return r.push }, throughput, leastRegistry)
	row("pull", func(r registryRound) float64 { return r.pull }, throughput, leastRegistry)
	row(fmt.Sprintf("manifests, %d readers at once", registryReads), func(r registryRound) float64 { return r.reads }, perSecond, 0)
	row("most memory of the process", func(r registryRound) float64 { return r.peak }, mebibytes, 0)
	return t
}

// measure starts a registry, measures it and ends it.
func (s *registrySide) measure(ctx context.Context, image v1.Image) (result registryRound, err error) {
	dir, err := os.MkdirTemp("", "slipway-bench-")
	if err != nil {
		return result, fmt.Errorf("make working directory: %w", err)
	}
	defer os.RemoveAll(dir)
	address, err := freeAddress()
	if err != nil {
		return result, err
	}
	file := filepath.Join(dir, "config.yml")
	config := fmt.Sprintf("version: 0.1\nlog: {level: warn, accesslog: {disabled: true}}\nstorage: {filesystem: {rootdirectory: %s/images}}\nhttp: {addr: %q}\n", dir, address)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return result, err
	}
	command := exec.CommandContext(ctx, s.program, append(s.arguments, file)...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	if err := command.Start(); err != nil {
		return result, err
	}
	defer func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	}()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: registryReads}}
	defer client.CloseIdleConnections()
	err = poll(ctx, 20*time.Millisecond, func(ctx context.Context) (bool, error) {
		return get(ctx, client, "http://"+address+"/v2/") == nil, nil
	})
	if err == nil {
		err = result.exercise(ctx, client, address, image)
	}
	if err == nil {
		result.peak, err = peakMemory(command.Process.Pid)
	}
	return result, err
}

// freeAddress is an address that nobody listens at.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}

// exercise pushes the image, pulls its layers without looking at them, and reads its manifest.
func (r *registryRound) exercise(ctx context.Context, client *http.Client, address string, image v1.Image) error {
	tag, err := name.NewTag(address + "/bench/image:latest")
	if err != nil {
		return err
	}
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	const size = registryLayers * registryLayer >> 20
	began := time.Now()
	if err := remote.Write(tag, image, remote.WithContext(ctx), remote.WithJobs(registryLayers)); err != nil {
		return err
	}
	r.push = size / time.Since(began).Seconds()

	var pulls errgroup.Group
	began = time.Now()
	for _, layer := range layers {
		id, err := layer.Digest()
		if err != nil {
			return err
		}
		pulls.Go(func() error { return get(ctx, client, "http://"+address+"/v2/bench/image/blobs/"+id.String()) })
	}
	if err := pulls.Wait(); err != nil {
		return err
	}
	r.pull = size / time.Since(began).Seconds()

	var reads errgroup.Group
	began = time.Now()
	for range registryReads {
		reads.Go(func() error { return get(ctx, client, "http://"+address+"/v2/bench/image/manifests/latest") })
	}
	if err := reads.Wait(); err != nil {
		return err
	}
	r.reads = registryReads / time.Since(began).Seconds()
	return nil
}

// get reads all of an answer.
func get(ctx context.Context, client *http.Client, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/vnd.docker.distribution.manifest.v2+json")
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("get %s: %s", address, answer.Status)
	}
	return nil
}

// peakMemory is the most that a process ever had, in bytes.
func peakMemory(pid int) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read memory of process: %w", err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	size, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kib, err := strconv.ParseFloat(size, 64)
	if err != nil {
		return 0, fmt.Errorf("read memory of process: %w", err)
	}
	return kib * 1024, nil
}
