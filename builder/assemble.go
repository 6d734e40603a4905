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
)

// assembly is an image that is made of a builder image and source, as source-to-image makes it: the source goes into a directory of the image, the
// image's script assemble builds it there, and the script run is the command of the result.
//
// Source: github.com/openshift/source-to-image, docs/builder_image.md; OpenShift Container Platform 3.9 Architecture, S2I builds.
type assembly struct {
	*run
	c        gateway.Client
	strategy *buildv1.SourceBuildStrategy
	// builder is the builder image's configuration and base its file system.
	builder dockerspec.DockerOCIImage
	base    llb.State
	// destination is the directory that source, scripts and artifacts go into.
	destination string
	// user runs the scripts, as uid:gid.
	user    string
	scripts scripts
	// env are variables for the script and for the image.
	env []corev1.EnvVar
	// secrets are the contents of mounted files, by their names.
	secrets map[string][]byte
}

// The directories of the work that the engine reads, by the same names.
const (
	sourceFolder, scriptsFolder, artifactsFolder = "source", "scripts", "artifacts"
)

// sourceToImage builds with the strategy Source.
func (r *run) sourceToImage(ctx context.Context, e *engine.Engine, strategy *buildv1.SourceBuildStrategy) error {
	a := &assembly{run: r, strategy: strategy, secrets: map[string][]byte{}}
	folders := map[string]string{sourceFolder: r.context}
	for _, name := range []string{scriptsFolder, artifactsFolder} {
		dir, err := r.directory(name)
		if err != nil {
			return err
		}
		folders[name] = dir
	}
	var err error
	if a.env, err = a.environment(); err != nil {
		return because(buildv1.StatusReasonFetchSourceFailed, err)
	}
	return r.image(ctx, e, recipe{step: "AssembleBuildScripts", solve: a.solve, folders: folders, secrets: a.secrets})
}

// solve makes the image.
func (a *assembly) solve(ctx context.Context, c gateway.Client) (*gateway.Result, error) {
	a.c = c
	err := a.timed(buildv1.StagePullImages, buildv1.StepPullBaseImage, func() (err error) {
		a.base, a.builder, err = a.pullImage(ctx, a.strategy.From.Name)
		return because(buildv1.StatusReasonPullBuilderImageFailed, err)
	})
	if err != nil {
		return nil, err
	}
	labels := a.builder.Config.Labels
	a.destination = path.Join("/", first(labels[destinationLabel], "/tmp"))
	a.user = first(labels[assembleUserLabel], a.builder.Config.User)
	if err := allowedUser(a.user, first(a.Variable("ALLOWED_UIDS"), "1-")); err != nil {
		return nil, because(buildv1.StatusReasonPullBuilderImageFailed, fmt.Errorf("builder image %q: %w", a.strategy.From.Name, err))
	}
	a.user = withGroup(a.user)
	if a.scripts, err = a.findScripts(ctx); err != nil {
		return nil, because(reasonFetchScriptsFailed, err)
	}
	state := a.base.File(a.copyOf(a.sourceState(), "src"), llb.WithCustomName("[internal] add the source"))
	if a.scripts.own {
		state = state.File(a.copyOf(a.folder(scriptsFolder), "scripts"), llb.WithCustomName("[internal] add scripts"))
	}
	if a.strategy.Incremental != nil && *a.strategy.Incremental && a.saveArtifacts(ctx) {
		state = state.File(a.copyOf(a.folder(artifactsFolder), "artifacts"), llb.WithCustomName("[internal] add artifacts"))
	}
	options, err := a.options()
	if err != nil {
		return nil, because(buildv1.StatusReasonFetchSourceFailed, err)
	}
	result, err := solve(ctx, c, state.Run(options...).Root(), nil)
	if err != nil {
		return nil, because(reasonAssembleFailed, fmt.Errorf("run assemble: %w", err))
	}
	return result, a.configure(result)
}

// pullImage finds an image and its configuration.
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

// folder is a directory of the work.
func (a *assembly) folder(name string, options ...llb.LocalOption) llb.State {
	return llb.Local(name, slices.Concat(options, []llb.LocalOption{
		llb.SessionID(a.c.BuildOpts().SessionID), llb.SharedKeyHint(name), llb.WithCustomName("[internal] read " + name),
	})...)
}

// sourceState is the source without what .s2iignore leaves out.
func (a *assembly) sourceState() llb.State {
	return a.folder(sourceFolder, llb.ExcludePatterns(a.ignored()))
}

func (a *assembly) ignored() []string {
	file, err := openIn(a.context, ".s2iignore")
	if err != nil {
		return nil
	}
	defer file.Close()
	patterns, err := ignorefile.ReadAll(file)
	if err != nil {
		fmt.Fprintf(a.Out, "warning: .s2iignore is not obeyed: %v\n", err)
	}
	return patterns
}

// copyOf copies a folder to a directory that the scripts' user owns.
func (a *assembly) copyOf(folder llb.State, to string) *llb.FileAction {
	owner, target := llb.WithUser(a.user), path.Join(a.destination, to)
	return llb.Mkdir(target, 0o755, llb.WithParents(true), owner).
		Copy(folder, "/", target+"/", &llb.CopyInfo{CreateDestPath: true, CopyDirContentsOnly: true}, owner)
}

// options are how assemble runs: always, since it may fetch what has changed elsewhere.
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

// configure gives the image its configuration: the builder image's, with the script run as its command.
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
		config.Config.Env = set(config.Config.Env, variable.Name, variable.Value)
	}
	return setConfig(result, config)
}

// environment are the variables for assemble and for the image: those of .s2i/environment, then the strategy's, then what says what is built.
func (a *assembly) environment() ([]corev1.EnvVar, error) {
	text, err := readIn(a.context, ".s2i/environment")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var env []corev1.EnvVar
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		name, value, found := strings.Cut(line, "=")
		if found && name != "" && !strings.HasPrefix(line, "#") {
			env = append(env, corev1.EnvVar{Name: name, Value: value})
		}
	}
	env = append(env, a.resolved(a.strategy.Env)...)
	for _, variable := range a.variables() {
		env = append(env, corev1.EnvVar{Name: variable[0], Value: variable[1]})
	}
	return env, nil
}

// openIn opens a file of a directory, which links do not lead out of.
func openIn(dir, name string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.Open(name)
}
