package set

import (
	"context"
	"fmt"
	"strings"

	imagev1 "github.com/openshift/api/image/v1"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	kubectlset "k8s.io/kubectl/pkg/cmd/set"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/cli/objects"
)

// newImage returns the `oc set image` command. It extends kubectl's command with support for images
// in image streams.
func newImage(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	source := ""
	command := kubectlset.NewCmdImage(factory, streams)
	run := command.Run
	command.Run = func(command *cobra.Command, args []string) {
		resolved, err := resolveImages(command.Context(), factory, source, args)
		util.CheckErr(err)
		run(command, resolved)
	}
	command.Flags().StringVar(&source, "source", "docker", "Type of the images: docker, imagestreamtag (istag) or imagestreamimage (isimage).")
	command.Example += `

  # Set a container's image to the current image of an image stream tag
  oc set image dc/web web=ruby:2.3 --source=istag`
	return command
}

// resolveImages replaces IMAGE in CONTAINER=IMAGE arguments with the pull spec of an image stream
// tag or image stream image. It does nothing if source is docker.
func resolveImages(ctx context.Context, factory util.Factory, source string, args []string) ([]string, error) {
	var reference func(client dynamic.Interface, namespace, name string) (string, error)
	switch source {
	case "docker":
		return args, nil
	case "imagestreamtag", "istag":
		reference = func(client dynamic.Interface, namespace, name string) (string, error) {
			tag, err := objects.Get[imagev1.ImageStreamTag](ctx, client, imagev1.GroupVersion.WithResource("imagestreamtags"), namespace, name)
			if err != nil {
				return "", err
			}
			return tag.Image.DockerImageReference, nil
		}
	case "imagestreamimage", "isimage":
		reference = func(client dynamic.Interface, namespace, name string) (string, error) {
			image, err := objects.Get[imagev1.ImageStreamImage](ctx, client, imagev1.GroupVersion.WithResource("imagestreamimages"), namespace, name)
			if err != nil {
				return "", err
			}
			return image.Image.DockerImageReference, nil
		}
	default:
		return nil, fmt.Errorf("parse --source %q: must be docker, imagestreamtag (istag) or imagestreamimage (isimage)", source)
	}
	client, err := factory.DynamicClient()
	if err != nil {
		return nil, err
	}
	current, _, err := factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	resolved := make([]string, 0, len(args))
	for _, arg := range args {
		container, image, isImage := strings.Cut(arg, "=")
		if !isImage {
			resolved = append(resolved, arg)
			continue
		}
		namespace, name, qualified := strings.Cut(image, "/")
		if !qualified {
			namespace, name = current, image
		}
		match, err := reference(client, namespace, name)
		if err != nil {
			return nil, err
		}
		if match == "" {
			return nil, fmt.Errorf("set image of container %q: %q has no image yet; import or push one", container, image)
		}
		resolved = append(resolved, container+"="+match)
	}
	return resolved, nil
}
