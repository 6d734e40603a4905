package builder

import (
	"context"
	"fmt"

	"github.com/moby/buildkit/client/llb"
	gateway "github.com/moby/buildkit/frontend/gateway/client"
	buildv1 "github.com/openshift/api/build/v1"
)

// squashed reports whether a build creates an image with one layer.
func squashed(strategy *buildv1.DockerBuildStrategy) bool {
	policy := strategy.ImageOptimizationPolicy
	return policy != nil && *policy != "" && *policy != buildv1.ImageOptimizationNone
}

// squash copies all files of an image, including those of its base image, into one layer. The
// content of deleted files is not copied.
func squash(ctx context.Context, c gateway.Client, result *gateway.Result) (*gateway.Result, error) {
	if result.Ref == nil {
		return result, nil
	}
	state, err := result.Ref.ToState()
	if err != nil {
		return nil, fmt.Errorf("squash layers: %w", err)
	}
	all := llb.Copy(state, "/", "/", &llb.CopyInfo{CopyDirContentsOnly: true})
	return solve(ctx, c, llb.Scratch().File(all, llb.WithCustomName("[internal] join layers")), result.Metadata)
}

// solve builds a state, and adds metadata to the result.
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
