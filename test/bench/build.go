package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// stockPrograms contains the stock side's programs with their source packages.
var stockPrograms = []struct{ name, pkg string }{
	{"etcd", "go.etcd.io/etcd/server/v3"},
	{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"},
	{"kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"},
	{"kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"},
	{"kubelet", "k8s.io/kubernetes/cmd/kubelet"},
	{"kube-proxy", "k8s.io/kubernetes/cmd/kube-proxy"},
	{"containerd", "github.com/containerd/containerd/v2/cmd/containerd"},
	// The default configuration of containerd runs this program for each pod.
	{"loopback", "github.com/containernetworking/plugins/plugins/main/loopback"},
}

// buildStock builds the stock programs into dir. It uses the versions in go.mod and the flags in
// the Makefile, so that the go command can reuse packages that it compiled for slipway. The first
// build takes minutes.
func buildStock(ctx context.Context, dir string) error {
	flags, err := linkerFlags(ctx)
	if err != nil {
		return err
	}
	for _, program := range stockPrograms {
		path := filepath.Join(dir, program.name)
		if _, err := os.Stat(path); err != nil {
			fmt.Fprintf(os.Stderr, "building stock %s\n", program.name)
		}
		command := exec.CommandContext(ctx, "nice", "go", "build", "-ldflags", flags, "-o", path, program.pkg)
		command.Env = append(os.Environ(), "CGO_ENABLED=0")
		command.Stderr = os.Stderr
		if err := command.Run(); err != nil {
			return fmt.Errorf("build stock %s: %w", program.name, err)
		}
	}
	return nil
}

// linkerFlags returns flags that strip the programs and set their version. The version must be set
// because clients reject a version that they cannot parse.
func linkerFlags(ctx context.Context) (string, error) {
	command := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("find Kubernetes version: %w", err)
	}
	version := strings.TrimSpace(string(output))
	numbers := strings.Split(strings.TrimPrefix(version, "v"), ".")
	if len(numbers) < 2 {
		return "", fmt.Errorf("find Kubernetes version: %q is not a version", version)
	}
	const variable = " -X k8s.io/component-base/version."
	return "-s -w" + variable + "gitVersion=" + version + variable + "gitMajor=" + numbers[0] + variable + "gitMinor=" + numbers[1] +
		variable + "gitTreeState=clean" + variable + "buildDate=1970-01-01T00:00:00Z", nil
}

// copyPrograms copies both sides' programs to dir, so that no other program on the machine shares
// their memory pages. Shared pages would reduce the proportional set size. When copyPrograms
// returns, all of the programs are in the page cache and on the disk.
func copyPrograms(dir string, o options) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("copy programs: %w", err)
	}
	if err := copyProgram(o.slipway, filepath.Join(dir, "slipway")); err != nil {
		return fmt.Errorf("copy slipway: %w; run: make build", err)
	}
	for _, program := range stockPrograms {
		if err := copyProgram(filepath.Join(o.stock, program.name), filepath.Join(dir, program.name)); err != nil {
			return fmt.Errorf("copy stock %s: %w", program.name, err)
		}
	}
	unix.Sync()
	return nil
}

func copyProgram(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(target, source); err != nil {
		target.Close()
		return err
	}
	return target.Close()
}
