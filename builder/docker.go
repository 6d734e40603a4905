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

// dockerfileName is the name of the Dockerfile in the directory that the engine reads.
const dockerfileName = "Dockerfile"

// docker runs a build with the Docker strategy.
func (r *run) docker(ctx context.Context, e *engine.Engine, strategy *buildv1.DockerBuildStrategy) error {
	if err := r.addMaterials(); err != nil {
		return withReason(buildv1.StatusReasonFetchSourceFailed, err)
	}
	dir, err := r.dockerfile(strategy)
	if err != nil {
		return withReason(buildv1.StatusReasonManageDockerfileFailed, err)
	}
	// Without "cmdline", the engine uses the frontend that the Dockerfile specifies.
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
	} else if !r.store.hasLayers {
		if err := r.importCache(options); err != nil {
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
		return result, withReason(dockerReason(err), err)
	}
	return r.image(ctx, e, recipe{
		step: buildv1.StepDockerBuild, solve: solve, dirs: map[string]string{"context": r.context, "dockerfile": dir}, exportCache: !squashed(strategy),
	})
}

// dockerReason distinguishes a failed step from a base image that cannot be pulled. It compares the
// error's text, because the engine does not distinguish these errors in any other way.
func dockerReason(err error) buildv1.StatusReason {
	if err != nil && strings.Contains(err.Error(), "failed to resolve source metadata for ") {
		return buildv1.StatusReasonPullBuilderImageFailed
	}
	return buildv1.StatusReasonDockerBuildFailed
}

// dockerfile adapts the Dockerfile in the source or in the Build, writes the result to a directory,
// and returns the directory.
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

// maxDockerfileBytes is the maximum size of a Dockerfile, in bytes.
const maxDockerfileBytes = 1 << 20

func (r *run) sourceDockerfile(path string) ([]byte, error) {
	root, err := os.OpenRoot(r.context)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file, err := root.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read %q: the source does not contain this Dockerfile; set contextDir or dockerfilePath in the build configuration", path)
	}
	if err != nil {
		return nil, fmt.Errorf("read Dockerfile: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxDockerfileBytes+1))
	if err == nil && len(text) > maxDockerfileBytes {
		err = errors.New("it is larger than a megabyte")
	}
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", path, err)
	}
	return text, nil
}

// resolved returns env with the values of the variables that refer to other objects. It reads these
// values from the pod's environment variables.
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

// importCache makes the frontend reuse layers from the image that this build replaces.
func (r *run) importCache(options map[string]string) error {
	if r.output() == "" {
		return nil
	}
	type cacheImport struct {
		Type  string
		Attrs map[string]string
	}
	imports, err := json.Marshal([]cacheImport{{"registry", map[string]string{"ref": r.output()}}})
	options["cache-imports"] = string(imports)
	return err
}
