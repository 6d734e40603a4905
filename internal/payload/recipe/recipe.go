// Package recipe defines how the programs that are embedded in slipway are built.
package recipe

import "github.com/slipway-platform/slipway/internal/payload/manifest"

// Containerd is the Go module that contains containerd and its shim.
const Containerd = "github.com/containerd/containerd/v2"

// Recipe describes one program.
type Recipe struct {
	// Name is one of the names that manifest.Names returns.
	Name string
	// Package is the program's main package.
	Package string
	// Tags contains the build tags.
	Tags []string
	// CGO is set if the program uses cgo. The program is built with the build machine's C compiler
	// and statically linked against that machine's C libraries.
	CGO bool
}

// All returns the recipes for all programs. The build tags exclude unused features: snapshotters
// for other file systems, tracing, and generated help texts.
func All() []Recipe {
	return []Recipe{
		{
			Name: manifest.Containerd, Package: Containerd + "/cmd/containerd",
			Tags: []string{"urfave_cli_no_docs", "static_build", "osusergo", "netgo", "grpcnotrace",
				"no_btrfs", "no_zfs", "no_devmapper", "no_tracing", "no_rdt"},
		},
		{
			Name: manifest.Shim, Package: Containerd + "/cmd/containerd-shim-runc-v2",
			Tags: []string{"urfave_cli_no_docs", "static_build", "osusergo", "netgo", "grpcnotrace", "no_grpc"},
		},
		{
			Name: manifest.Runc, Package: "github.com/opencontainers/runc", CGO: true,
			Tags: []string{"seccomp", "urfave_cli_no_docs", "netgo", "osusergo"},
		},
		{Name: manifest.Supervisor, Package: "./cmd/slipway-supervisor"},
		{Name: manifest.CNI, Package: "./cmd/slipway-cni"},
		{Name: manifest.Pause, Package: "./cmd/pause"},
		{Name: manifest.Deployer, Package: "./cmd/slipway-deployer"},
		{Name: manifest.Builder, Package: "./cmd/slipway-builder"},
		{Name: manifest.EgressRouter, Package: "./cmd/slipway-egress-router"},
		{Name: manifest.OAuthProxy, Package: "./cmd/slipway-oauth-proxy"},
	}
}
