package rollout

import (
	"slices"
	"strings"

	appsv1 "github.com/openshift/api/apps/v1"
	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/apigroup/image/pull"
)

// Streams returns the image streams of a configuration's triggers, as <namespace>/<name>.
func Streams(dc *appsv1.DeploymentConfig) (streams []string) {
	for _, trigger := range dc.Spec.Triggers {
		if params := trigger.ImageChangeParams; params != nil {
			namespace, stream, _ := source(dc, params)
			streams = append(streams, namespace+"/"+stream)
		}
	}
	return streams
}

// source returns the tag that a trigger watches.
func source(dc *appsv1.DeploymentConfig, params *appsv1.DeploymentTriggerImageChangeParams) (namespace, stream, tag string) {
	if namespace = params.From.Namespace; namespace == "" {
		namespace = dc.Namespace
	}
	stream, tag, _ = strings.Cut(params.From.Name, ":")
	return namespace, stream, tag
}

// Forced reports whether to update the image of a trigger that is not automatic.
type Forced func(*appsv1.DeploymentTriggerImageChangeParams) bool

// UpdateImages sets the images in a configuration's template to the current images of the watched
// tags, and reports whether the configuration has changed. It skips a trigger that is not
// automatic, except before the first deployment or if force returns true. force is optional. It
// also skips an image stream if find returns nil, and tags without an image.
func UpdateImages(dc *appsv1.DeploymentConfig, force Forced, find func(namespace, name string) *imagev1.ImageStream) (changed bool) {
	for _, trigger := range dc.Spec.Triggers {
		params := trigger.ImageChangeParams
		if trigger.Type != appsv1.DeploymentTriggerOnImageChange || params == nil {
			continue
		}
		first := dc.Status.LatestVersion == 0 && params.LastTriggeredImage == ""
		if !params.Automatic && !first && (force == nil || !force(params)) {
			continue
		}
		namespace, stream, tag := source(dc, params)
		image := pull.LatestSpec(find(namespace, stream), tag)
		if image == "" {
			continue
		}
		if params.LastTriggeredImage != image {
			params.LastTriggeredImage, changed = image, true
		}
		for _, containers := range [][]corev1.Container{dc.Spec.Template.Spec.InitContainers, dc.Spec.Template.Spec.Containers} {
			for i := range containers {
				if slices.Contains(params.ContainerNames, containers[i].Name) && containers[i].Image != image {
					containers[i].Image, changed = image, true
				}
			}
		}
	}
	return changed
}
