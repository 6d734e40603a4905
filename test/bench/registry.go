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

	"github.com/slipway-platform/slipway/test/bench/host"
	"github.com/slipway-platform/slipway/test/bench/stats"
)

const (
	registryLayers = 4        // layers of the image, all pushed and pulled concurrently
	registryLayer  = 32 << 20 // bytes of each layer
	registryPulls  = 8        // consecutive pulls of the image
	registryReads  = 1000     // concurrent readers of one manifest
	leastRegistry  = 0.95     // minimum throughput, relative to the Linux distribution's registry
)

// registryRound contains one registry's measurements in one round.
type registryRound struct {
	push, pull float64 // in MiB per second
	reads      float64 // manifests per second
	peak       float64 // peak memory of the process in bytes, including its program
	anonymous  float64 // anonymous memory in bytes at the end
}

// runRegistry compares Slipway's registry, without a cluster, with the docker-registry package of
// the Linux distribution, and reports the result. In each round, both registries run at the same
// time with the same configuration, each with an empty directory on the same disk. The measurements
// alternate.
func runRegistry(ctx context.Context, o options) error {
	stock, err := exec.LookPath("docker-registry")
	if err != nil {
		return errors.New("find the stock registry: run: apt-get install docker-registry; systemctl disable --now docker-registry")
	}
	machine, started := host.Describe(), time.Now()
	image, err := random.Image(registryLayer, registryLayers)
	if err != nil {
		return fmt.Errorf("make image: %w", err)
	}
	var rounds [2][]registryRound
	for range o.rounds {
		results, err := measureRegistries(ctx, image, []string{o.slipway, "registry"}, []string{stock, "serve"})
		if err != nil {
			return fmt.Errorf("measure registries: %w", err)
		}
		for side, result := range results {
			rounds[side] = append(rounds[side], result)
		}
	}
	conditions := fmt.Sprintf("%s.\n%s; medians of %d rounds, an image of %d layers with %d MiB each, pulled %d times.\n",
		machine, started.UTC().Format("2006-01-02 15:04 MST"), o.rounds, registryLayers, registryLayer>>20, registryPulls)
	compared := compareRegistries(rounds[0], rounds[1])
	fmt.Print("\n" + conditions + "\n" + compared.Text())
	if o.markdown == "" {
		return nil
	}
	return registrySection.Write(o.markdown, conditions+"\n"+compared.Markdown())
}

// compareRegistries returns a table that compares both registries.
func compareRegistries(own, stock []registryRound) stats.Table {
	t := stats.Table{Heading: []string{"registry", "Slipway", "docker-registry", "ratio", "aim", ""}}
	row := func(name string, of func(registryRound) float64, print func(float64) string, least float64) {
		var values [2][]float64
		for side, rounds := range [][]registryRound{own, stock} {
			for _, r := range rounds {
				values[side] = append(values[side], of(r))
			}
		}
		a, b := stats.Median(values[0]), stats.Median(values[1])
		cells := []string{name, print(a), print(b), fmt.Sprintf("%.2f", a/b), "", ""}
		if least > 0 {
			cells[4], cells[5] = fmt.Sprintf(">= %.2f", least), stats.Outcome(a/b >= least)
		}
		t.Rows = append(t.Rows, cells)
	}
	throughput := func(v float64) string { return fmt.Sprintf("%.0f MiB/s", v) }
	row("push", func(r registryRound) float64 { return r.push }, throughput, leastRegistry)
	row("pull", func(r registryRound) float64 { return r.pull }, throughput, leastRegistry)
	row(fmt.Sprintf("manifests, %d concurrent readers", registryReads), func(r registryRound) float64 { return r.reads }, stats.PerSecond, 0)
	row("anonymous memory at the end", func(r registryRound) float64 { return r.anonymous }, stats.Mebibytes, 0)
	row("peak memory, with the program", func(r registryRound) float64 { return r.peak }, stats.Mebibytes, 0)
	return t
}

// measureRegistries starts both registries, measures them alternately, and stops them. The last
// argument of each command is the registry's configuration file.
func measureRegistries(ctx context.Context, image v1.Image, commands ...[]string) (results [2]registryRound, err error) {
	var sides []*registrySide
	for _, command := range commands {
		side, err := startRegistry(ctx, command)
		if err != nil {
			return results, fmt.Errorf("start %q: %w", command[0], err)
		}
		defer side.stop()
		sides = append(sides, side)
	}
	for _, work := range []func(*registrySide, *registryRound) error{
		func(s *registrySide, r *registryRound) (err error) { r.push, err = s.push(ctx, image); return err },
		func(s *registrySide, r *registryRound) (err error) { r.reads, err = s.read(ctx); return err },
	} {
		for i, side := range sides {
			if err := work(side, &results[i]); err != nil {
				return results, err
			}
		}
	}
	var took [2]time.Duration
	for range registryPulls {
		for i, side := range sides {
			time, err := side.pull(ctx, image)
			if err != nil {
				return results, err
			}
			took[i] += time
		}
	}
	for i, side := range sides {
		results[i].pull = registryPulls * registrySize / took[i].Seconds()
		if results[i].peak, err = memoryOf(side.process.Process.Pid, "VmHWM"); err != nil {
			return results, err
		}
		if results[i].anonymous, err = memoryOf(side.process.Process.Pid, "RssAnon"); err != nil {
			return results, err
		}
	}
	return results, nil
}

// registrySize is the size of the image in MiB.
const registrySize = registryLayers * registryLayer >> 20

// registrySide is a running registry.
type registrySide struct {
	dir     string
	address string
	process *exec.Cmd
	client  *http.Client
}

func startRegistry(ctx context.Context, command []string) (*registrySide, error) {
	dir, err := os.MkdirTemp("", "slipway-bench-")
	if err != nil {
		return nil, fmt.Errorf("create working directory: %w", err)
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "config.yml")
	config := fmt.Sprintf("version: 0.1\nlog: {level: warn, accesslog: {disabled: true}}\nstorage: {filesystem: {rootdirectory: %s/images}}\nhttp: {addr: %q}\n", dir, address)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	process := exec.CommandContext(ctx, command[0], append(command[1:], file)...)
	process.Cancel = func() error { return process.Process.Signal(syscall.SIGTERM) }
	if err := process.Start(); err != nil {
		return nil, err
	}
	s := &registrySide{dir, address, process, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: registryReads}}}
	err = poll(ctx, 20*time.Millisecond, func(ctx context.Context) (bool, error) {
		return get(ctx, s.client, "http://"+address+"/v2/") == nil, nil
	})
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *registrySide) stop() {
	s.client.CloseIdleConnections()
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
	_ = os.RemoveAll(s.dir)
}

// freeAddress returns an address on which no process is listening.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}

// push pushes the image and returns the rate in MiB per second.
func (s *registrySide) push(ctx context.Context, image v1.Image) (rate float64, err error) {
	tag, err := name.NewTag(s.address + "/bench/image:latest")
	if err != nil {
		return 0, err
	}
	start := time.Now()
	err = remote.Write(tag, image, remote.WithContext(ctx), remote.WithJobs(registryLayers))
	return registrySize / time.Since(start).Seconds(), err
}

// pull reads all layers concurrently and discards them.
func (s *registrySide) pull(ctx context.Context, image v1.Image) (took time.Duration, err error) {
	layers, err := image.Layers()
	if err != nil {
		return 0, err
	}
	var pulls errgroup.Group
	start := time.Now()
	for _, layer := range layers {
		id, err := layer.Digest()
		if err != nil {
			return 0, err
		}
		pulls.Go(func() error { return get(ctx, s.client, "http://"+s.address+"/v2/bench/image/blobs/"+id.String()) })
	}
	err = pulls.Wait()
	return time.Since(start), err
}

// read reads the manifest many times concurrently. It returns the rate in manifests per second.
func (s *registrySide) read(ctx context.Context) (rate float64, err error) {
	var reads errgroup.Group
	start := time.Now()
	for range registryReads {
		reads.Go(func() error { return get(ctx, s.client, "http://"+s.address+"/v2/bench/image/manifests/latest") })
	}
	err = reads.Wait()
	return registryReads / time.Since(start).Seconds(), err
}

// get reads a response completely.
func get(ctx context.Context, client *http.Client, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/vnd.docker.distribution.manifest.v2+json")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("get %s: %s", address, response.Status)
	}
	return nil
}

// memoryOf returns the value of a field in /proc/<pid>/status, in bytes.
func memoryOf(pid int, quantity string) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read process memory: %w", err)
	}
	_, rest, _ := strings.Cut(string(status), quantity+":")
	size, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kib, err := strconv.ParseFloat(size, 64)
	if err != nil {
		return 0, fmt.Errorf("read process memory: %w", err)
	}
	return kib * 1024, nil
}
