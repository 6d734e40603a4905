package builder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	gateway "github.com/moby/buildkit/frontend/gateway/client"
	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/builder/engine"
)

// dockerfileName is what the Dockerfile is called in the directory that the engine reads it from.
const dockerfileName = "Dockerfile"

// docker builds a Dockerfile.
func (r *run) docker(ctx context.Context, e *engine.Engine, strategy *buildv1.DockerBuildStrategy) error {
	if err := r.addMaterials(); err != nil {
		return because(buildv1.StatusReasonFetchSourceFailed, err)
	}
	dir, err := r.dockerfile(strategy)
	if err != nil {
		return because(buildv1.StatusReasonManageDockerfileFailed, err)
	}
	// The frontend is the engine's own: without a command line it would look for the one that a Dockerfile may ask for.
	options := map[string]string{"filename": dockerfileName, "cmdline": "builtin"}
	for _, argument := range strategy.BuildArgs {
		options["build-arg:"+argument.Name] = argument.Value
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"} {
		if proxy := r.Variable(name); proxy != "" {
			options["build-arg:"+name] = proxy
		}
	}
	for _, image := range r.Build.Spec.Source.Images {
		for _, name := range image.As {
			options["context:"+name] = "docker-image://" + image.From.Name
		}
	}
	if strategy.NoCache {
		options["no-cache"] = ""
	} else if !r.store.kept {
		if err := r.remember(options); err != nil {
			return err
		}
	}
	if strategy.ForcePull {
		options["image-resolve-mode"] = "pull"
	}
	solve := func(ctx context.Context, c gateway.Client) (*gateway.Result, error) {
		result, err := c.Solve(ctx, gateway.SolveRequest{Frontend: engine.DockerfileFrontend, FrontendOpt: options, Evaluate: true})
		if err == nil && squashed(strategy) {
			result, err = squash(ctx, c, result)
		}
		return result, because(dockerReason(err), err)
	}
	return r.image(ctx, e, recipe{
		step: buildv1.StepDockerBuild, solve: solve, folders: map[string]string{"context": r.context, "dockerfile": dir}, remember: !squashed(strategy),
	})
}

// dockerReason tells a step that failed from an image that the Dockerfile begins with and that cannot be pulled, which the engine knows by its words alone.
func dockerReason(err error) buildv1.StatusReason {
	if err != nil && strings.Contains(err.Error(), "failed to resolve source metadata for ") {
		return buildv1.StatusReasonPullBuilderImageFailed
	}
	return buildv1.StatusReasonDockerBuildFailed
}

// dockerfile writes the Dockerfile to a directory of its own, which it returns: the source's, or the one in the Build, adapted.
func (r *run) dockerfile(strategy *buildv1.DockerBuildStrategy) (string, error) {
	text := []byte(value(r.Build.Spec.Source.Dockerfile))
	if r.Build.Spec.Source.Dockerfile == nil {
		var err error
		if text, err = r.sourceDockerfile(first(strategy.DockerfilePath, dockerfileName)); err != nil {
			return "", err
		}
	}
	from := ""
	if strategy.From != nil {
		from = strategy.From.Name
	}
	text, err := adapt(text, from, r.resolved(strategy.Env))
	if err != nil {
		return "", err
	}
	dir, err := r.directory("dockerfile")
	if err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, dockerfileName), text, 0o600)
}

// largestDockerfile bounds a Dockerfile, in bytes.
const largestDockerfile = 1 << 20

func (r *run) sourceDockerfile(path string) ([]byte, error) {
	root, err := os.OpenRoot(r.context)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file, err := root.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read %q: the source has no such Dockerfile", path)
	}
	if err != nil {
		return nil, fmt.Errorf("read Dockerfile: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, largestDockerfile+1))
	if err == nil && len(text) > largestDockerfile {
		err = errors.New("it is larger than a megabyte")
	}
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", path, err)
	}
	return text, nil
}

// resolved are variables with the values that the pod was given for those that refer to something else.
func (r *run) resolved(env []corev1.EnvVar) []corev1.EnvVar {
	var values []corev1.EnvVar
	for _, variable := range env {
		if variable.ValueFrom != nil {
			variable = corev1.EnvVar{Name: variable.Name, Value: r.Variable(variable.Name)}
		}
		values = append(values, variable)
	}
	return values
}

// remember makes the frontend look for layers that it need not make again, in the image that this build replaces.
func (r *run) remember(options map[string]string) error {
	if r.output() == "" {
		return nil
	}
	type place struct {
		Type  string
		Attrs map[string]string
	}
	places, err := json.Marshal([]place{{"registry", map[string]string{"ref": r.output()}}})
	options["cache-imports"] = string(places)
	return err
}
