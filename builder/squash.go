package builder

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/moby/buildkit/client/llb"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	gateway "github.com/moby/buildkit/frontend/gateway/client"
	buildv1 "github.com/openshift/api/build/v1"
)

// squashed tells whether a build makes one layer above those of its base image.
func squashed(strategy *buildv1.DockerBuildStrategy) bool {
	policy := strategy.ImageOptimizationPolicy
	return policy != nil && *policy != "" && *policy != buildv1.ImageOptimizationNone
}

// squash puts what a Dockerfile's last stage adds to its base image into one layer. Where the base is no image of its own, such as another stage, that
// is everything.
func (r *run) squash(ctx context.Context, c gateway.Client, result *gateway.Result, dockerfile string) (*gateway.Result, error) {
	if result.Ref == nil {
		return result, nil
	}
	image, err := baseOf(dockerfile)
	if err != nil {
		return nil, err
	}
	made, err := result.Ref.ToState()
	if err != nil {
		return nil, fmt.Errorf("squash layers: %w", err)
	}
	base := llb.Scratch()
	if image != "" {
		base = llb.Image(image)
	}
	return solve(ctx, c, oneLayer(base, made), result.Metadata)
}

// oneLayer is a file system with all that it adds to another in one layer.
func oneLayer(base, made llb.State) llb.State {
	return llb.Merge([]llb.State{base, llb.Diff(base, made)}, llb.WithCustomName("[internal] join layers"))
}

// solve makes a state, with what else is known of it.
func solve(ctx context.Context, c gateway.Client, state llb.State, metadata map[string][]byte) (*gateway.Result, error) {
	definition, err := state.Marshal(ctx)
	if err != nil {
		return nil, err
	}
	result, err := c.Solve(ctx, gateway.SolveRequest{Definition: definition.ToPB(), Evaluate: true})
	if err != nil {
		return nil, err
	}
	for key, value := range metadata {
		result.AddMeta(key, value)
	}
	return result, nil
}

// baseOf is the image that a Dockerfile's last stage begins with; empty if that is none of its own.
func baseOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	parsed, err := parser.Parse(file)
	if err != nil {
		return "", fmt.Errorf("parse Dockerfile: %w", err)
	}
	stages, _, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		return "", fmt.Errorf("parse Dockerfile: %w", err)
	}
	last := stages[len(stages)-1]
	isStage := slices.ContainsFunc(stages[:len(stages)-1], func(s instructions.Stage) bool { return strings.EqualFold(s.Name, last.BaseName) })
	if isStage || last.BaseName == "scratch" || strings.ContainsRune(last.BaseName, '$') {
		return "", nil
	}
	return last.BaseName, nil
}
