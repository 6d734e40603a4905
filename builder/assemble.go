package builder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/moby/buildkit/client/llb"
	"github.com/moby/buildkit/client/llb/sourceresolver"
	gateway "github.com/moby/buildkit/frontend/gateway/client"
	dockerspec "github.com/moby/docker-image-spec/specs-go/v1"
	"github.com/moby/patternmatcher/ignorefile"
	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/builder/engine"
	"github.com/slipway-platform/slipway/internal/buildpod"
)

// assembly builds an image from a builder image and source, as source-to-image does. It copies the
// source into the image, runs the image's assemble script to build it, and sets the command of the
// new image to the run script.
//
// Source: github.com/openshift/source-to-image, docs/builder_image.md; OpenShift Container Platform
// 3.9 Architecture, S2I builds.
type assembly struct {
	*run
	c        gateway.Client
	strategy *buildv1.SourceBuildStrategy
	// builder is the builder image's configuration. base is its file system.
	builder dockerspec.DockerOCIImage
	base    llb.State
	// destination is the directory for the source, scripts and artifacts.
	destination string
	scripts     scripts
	// env contains the environment variables for the assemble script and for the image.
	env []corev1.EnvVar
	// secrets maps the IDs of mounted secret files to the files' content.
	secrets map[string][]byte
}

// Directories in Work. The engine refers to them by the same names.
const (
	sourceDir, scriptsDir, artifactsDir = "source", "scripts", "artifacts"
)

// sourceToImage runs a build with the Source strategy.
func (r *run) sourceToImage(ctx context.Context, e *engine.Engine, strategy *buildv1.SourceBuildStrategy) error {
	a := &assembly{run: r, strategy: strategy, secrets: map[string][]byte{}}
	dirs := map[string]string{sourceDir: r.context}
	for _, name := range []string{scriptsDir, artifactsDir} {
		dir, err := r.directory(name)
		if err != nil {
			return err
		}
		dirs[name] = dir
	}
	var err error
	if a.env, err = a.environment(); err != nil {
		return withReason(buildv1.StatusReasonFetchSourceFailed, err)
	}
	return r.image(ctx, e, recipe{step: "AssembleBuildScripts", solve: a.solve, dirs: dirs, secrets: a.secrets})
}

// solve builds the image.
func (a *assembly) solve(ctx context.Context, c gateway.Client) (*gateway.Result, error) {
	a.c = c
	err := a.timed(buildv1.StagePullImages, buildv1.StepPullBaseImage, func() (err error) {
		a.base, a.builder, err = a.pullImage(ctx, a.strategy.From.Name)
		return withReason(buildv1.StatusReasonPullBuilderImageFailed, err)
	})
	if err != nil {
		return nil, err
	}
	labels := a.builder.Config.Labels
	a.destination = path.Join("/", first(labels[destinationLabel], "/tmp"))
	a.user = first(labels[assembleUserLabel], a.builder.Config.User)
	if err := checkUser(a.user, first(a.Variable(buildpod.AllowedUIDsVariable), "1-")); err != nil {
		return nil, withReason(buildv1.StatusReasonPullBuilderImageFailed, fmt.Errorf("builder image %q: %w", a.strategy.From.Name, err))
	}
	a.user = withGroup(a.user)
	if a.scripts, err = a.findScripts(ctx); err != nil {
		return nil, withReason(reasonFetchScriptsFailed, err)
	}
	state := a.base.File(a.copyDir(a.sourceState(), "src"), llb.WithCustomName("[internal] add the source"))
	if a.scripts.copied {
		state = state.File(a.copyDir(a.dir(scriptsDir), "scripts"), llb.WithCustomName("[internal] add scripts"))
	}
	if a.strategy.Incremental != nil && *a.strategy.Incremental && a.saveArtifacts(ctx) {
		state = state.File(a.copyDir(a.dir(artifactsDir), "artifacts"), llb.WithCustomName("[internal] add artifacts"))
	}
	options, err := a.options()
	if err != nil {
		return nil, withReason(buildv1.StatusReasonFetchSourceFailed, err)
	}
	result, err := solve(ctx, c, state.Run(options...).Root(), nil)
	if err != nil {
		return nil, withReason(reasonAssembleFailed, fmt.Errorf("run assemble: %w", err))
	}
	return result, a.configure(result)
}

// pullImage returns an image's file system and its configuration.
func (a *assembly) pullImage(ctx context.Context, name string) (llb.State, dockerspec.DockerOCIImage, error) {
	mode := "default"
	if a.strategy.ForcePull {
		mode = "pull"
	}
	reference, _, data, err := a.c.ResolveImageConfig(ctx, name, sourceresolver.Opt{ImageOpt: &sourceresolver.ResolveImageOpt{ResolveMode: mode}})
	var config dockerspec.DockerOCIImage
	if err == nil {
		err = json.Unmarshal(data, &config)
	}
	if err != nil {
		return llb.State{}, config, fmt.Errorf("pull image %q: %w", name, err)
	}
	return llb.Image(reference, llb.WithCustomName("[internal] pull "+name)), config, nil
}

// dir returns the state of a directory in Work.
func (a *assembly) dir(name string, options ...llb.LocalOption) llb.State {
	return llb.Local(name, slices.Concat(options, []llb.LocalOption{
		llb.SessionID(a.c.BuildOpts().SessionID), llb.SharedKeyHint(name), llb.WithCustomName("[internal] read " + name),
	})...)
}

// sourceState returns the state of the source directory, without the files that .s2iignore
// excludes.
func (a *assembly) sourceState() llb.State {
	return a.dir(sourceDir, llb.ExcludePatterns(a.ignorePatterns()))
}

func (a *assembly) ignorePatterns() []string {
	file, err := openInRoot(a.context, ".s2iignore")
	if err != nil {
		return nil
	}
	defer file.Close()
	patterns, err := ignorefile.ReadAll(file)
	if err != nil {
		fmt.Fprintf(a.Out, "warning: cannot apply .s2iignore: %v\n", err)
	}
	return patterns
}

// copyDir copies a directory to a directory that is owned by the scripts' user.
func (a *assembly) copyDir(from llb.State, to string) *llb.FileAction {
	owner, target := llb.WithUser(a.user), path.Join(a.destination, to)
	return llb.Mkdir(target, 0o755, llb.WithParents(true), owner).
		Copy(from, "/", target+"/", &llb.CopyInfo{CreateDestPath: true, CopyDirContentsOnly: true}, owner)
}

// options returns the run options for the assemble script. The script is never cached, because it
// can download files that have changed.
func (a *assembly) options() ([]llb.RunOption, error) {
	config := a.builder.Config
	work := first(config.WorkingDir, "/")
	options := []llb.RunOption{
		llb.Args([]string{"/bin/sh", "-c", `"$0"`, a.scripts.path("assemble")}), llb.User(a.user), llb.Dir(work), llb.IgnoreCache,
		llb.WithCustomName("[internal] assemble"), llb.WithProxy(llb.ProxyEnv{
			HTTPProxy: a.Variable("HTTP_PROXY"), HTTPSProxy: a.Variable("HTTPS_PROXY"), NoProxy: a.Variable("NO_PROXY"),
		}),
	}
	for _, variable := range config.Env {
		name, text, _ := strings.Cut(variable, "=")
		options = append(options, llb.AddEnv(name, text))
	}
	for _, variable := range a.env {
		options = append(options, llb.AddEnv(variable.Name, variable.Value))
	}
	for _, m := range a.materials() {
		files, err := m.files()
		if err != nil {
			return nil, err
		}
		destination := m.destination
		if !path.IsAbs(destination) {
			destination = path.Join(work, destination)
		}
		for _, name := range slices.Sorted(maps.Keys(files)) {
			id := fmt.Sprintf("file-%d", len(a.secrets))
			a.secrets[id] = files[name]
			options = append(options, llb.AddSecret(path.Join(destination, name), llb.SecretID(id), llb.SecretFileOpt(0, 0, 0o444)))
		}
	}
	return options, nil
}

// configure sets the image's configuration to the builder image's configuration, with the run
// script as the command.
func (a *assembly) configure(result *gateway.Result) error {
	config := a.builder
	config.Config.Cmd = []string{a.scripts.path("run")}
	config.Config.Labels = maps.Clone(config.Config.Labels)
	if config.Config.Labels == nil {
		config.Config.Labels = map[string]string{}
	}
	config.Config.Labels[labelPrefix+"image"] = a.strategy.From.Name
	config.Config.Labels["io.k8s.display-name"] = first(a.output(), a.Build.Name)
	for _, variable := range a.env {
		config.Config.Env = setVariable(config.Config.Env, variable.Name, variable.Value)
	}
	return setConfig(result, config)
}

// environment returns the environment variables for the assemble script and for the image: the
// variables in .s2i/environment, the variables in the strategy, and the variables that describe the
// build.
func (a *assembly) environment() ([]corev1.EnvVar, error) {
	text, err := readInRoot(a.context, ".s2i/environment")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var env []corev1.EnvVar
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		name, value, ok := strings.Cut(line, "=")
		if ok && name != "" && !strings.HasPrefix(line, "#") {
			env = append(env, corev1.EnvVar{Name: name, Value: value})
		}
	}
	env = append(env, a.resolved(a.strategy.Env)...)
	for _, variable := range a.variables() {
		env = append(env, corev1.EnvVar{Name: variable[0], Value: variable[1]})
	}
	return env, nil
}

// openInRoot opens a file in a directory. It does not follow symbolic links that lead out of the
// directory.
func openInRoot(dir, name string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.Open(name)
}
