package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/internal/payload/manifest"
	"github.com/slipway-platform/slipway/internal/payload/recipe"
)

// programRecipe is a recipe with its linker flags, for a CPU architecture.
type programRecipe struct {
	recipe.Recipe
	ldflags []string
	arch    string
}

// recipes returns the recipes of all programs for an architecture. The version flags are the same
// as in the projects' own releases.
func recipes(ctx context.Context, arch string) (all []programRecipe, err error) {
	version, err := goCommand(ctx, "list", "-m", "-f", "{{.Version}}", recipe.Containerd)
	if err != nil {
		return nil, err
	}
	for _, r := range recipe.All() {
		p := programRecipe{Recipe: r, arch: arch}
		if strings.HasPrefix(r.Package, recipe.Containerd+"/") {
			p.ldflags = []string{"-X", recipe.Containerd + "/version.Version=" + version, "-X", recipe.Containerd + "/version.Package=" + recipe.Containerd}
		}
		all = append(all, p)
	}
	return all, nil
}

// arguments returns the go command's arguments that build the program and write it to output.
func (r programRecipe) arguments(output string) []string {
	ldflags := append([]string{"-s", "-w"}, r.ldflags...)
	if r.CGO {
		ldflags = append(ldflags, "-linkmode", "external", "-extldflags", "-static")
	}
	// The commit is not embedded, so a program stays the same until its sources change. As long as a
	// program stays the same, running pods can keep using it.
	args := []string{"build", "-buildvcs=false", "-ldflags", strings.Join(ldflags, " "), "-o", output}
	if len(r.Tags) > 0 {
		args = append(args, "-tags", strings.Join(r.Tags, ","))
	}
	return append(args, r.Package)
}

// inputs returns a hash of everything that the program is built from.
func (r programRecipe) inputs(ctx context.Context) (string, error) {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s %s %q\n", runtime.Version(), r.arch, r.arguments(""))
	files := []string{"go.mod", "go.sum"}
	if strings.HasPrefix(r.Package, "./") {
		// Only this repository's packages are listed, because go.sum identifies all other packages.
		list, err := r.goCommand(ctx, "list", "-deps", "-f",
			`{{if .Module}}{{if .Module.Main}}{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{range .EmbedFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{end}}{{end}}`, r.Package)
		if err != nil {
			return "", err
		}
		sources := strings.Fields(list)
		slices.Sort(sources)
		files = append(files, sources...)
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %x\n", filepath.Base(path), sha256.Sum256(data))
	}
	return hex.EncodeToString(sum.Sum(nil)[:16]), nil
}

// build builds the program and writes it, compressed, to dir. It returns the program and its
// compressed size in bytes.
func (r programRecipe) build(ctx context.Context, dir string) (manifest.Program, int64, error) {
	temp, err := os.MkdirTemp("", "slipway-payload-")
	if err != nil {
		return manifest.Program{}, 0, err
	}
	defer os.RemoveAll(temp)
	output := filepath.Join(temp, r.Name)
	command := exec.CommandContext(ctx, "go", r.arguments(output)...)
	command.Env = append(r.environment(), "CGO_ENABLED=0")
	if r.CGO {
		compiler := compilerFor(r.arch)
		if err := compiler.check(ctx); err != nil {
			return manifest.Program{}, 0, err
		}
		command.Env = slices.Concat(r.environment(), []string{"CGO_ENABLED=1"}, compiler.environment())
	}
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if err := command.Run(); err != nil {
		return manifest.Program{}, 0, fmt.Errorf("go build: %w", err)
	}
	program := manifest.Program{Name: r.Name}
	sum := sha256.New()
	compressed, err := compress(output, filepath.Join(dir, program.Archive()), func(content io.Reader) io.Reader {
		return io.TeeReader(content, sum)
	})
	if err != nil {
		return manifest.Program{}, 0, err
	}
	info, err := os.Stat(output)
	if err != nil {
		return manifest.Program{}, 0, err
	}
	program.Size, program.SHA256 = info.Size(), hex.EncodeToString(sum.Sum(nil))
	return program, compressed, nil
}

// environment returns the go command's environment.
func (r programRecipe) environment() []string { return append(os.Environ(), "GOARCH="+r.arch) }

// goCommand works like the goCommand function, but for the recipe's architecture.
func (r programRecipe) goCommand(ctx context.Context, args ...string) (string, error) {
	return output(ctx, r.environment(), args...)
}

// architectures returns the architectures for which payload builds programs.
func architectures() []string { return []string{"amd64", "arm64"} }

// compiler describes a C compiler.
type compiler struct {
	program string
	// libraries is the directory that contains pkg-config's library descriptions; "" means the
	// machine's default.
	libraries string
	// remedy describes how to install missing tools or libraries.
	remedy string
}

// compilerFor returns the compiler for an architecture.
func compilerFor(arch string) compiler {
	if arch == runtime.GOARCH {
		return compiler{"gcc", "", "apt-get install gcc libc6-dev pkg-config libseccomp-dev"}
	}
	name := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[arch]
	return compiler{
		name + "-linux-gnu-gcc", "/usr/lib/" + name + "-linux-gnu/pkgconfig",
		fmt.Sprintf("dpkg --add-architecture %s && apt-get update && apt-get install gcc-%s-linux-gnu pkg-config libseccomp-dev:%[1]s", arch, strings.ReplaceAll(name, "_", "-")),
	}
}

// environment returns the environment variables that select the compiler.
func (c compiler) environment() []string {
	if c.libraries == "" {
		return nil
	}
	return []string{"CC=" + c.program, "PKG_CONFIG_LIBDIR=" + c.libraries}
}

// check returns an error with a remedy if tools or libraries that are required to build runc's C
// code are missing.
func (c compiler) check(ctx context.Context) error {
	for _, program := range []string{c.program, "pkg-config"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%w; run: %s", err, c.remedy)
		}
	}
	command := exec.CommandContext(ctx, "pkg-config", "--static", "--libs", "libseccomp")
	command.Env = append(os.Environ(), c.environment()...)
	if err := command.Run(); err != nil {
		return fmt.Errorf("find library libseccomp: %w; run: %s", err, c.remedy)
	}
	return nil
}

// goCommand returns the trimmed output of the go command.
func goCommand(ctx context.Context, args ...string) (string, error) {
	return output(ctx, os.Environ(), args...)
}

func output(ctx context.Context, environment []string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Env, command.Stderr = environment, os.Stderr
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(output)), nil
}
