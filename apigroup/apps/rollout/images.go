package rollout

import (
	"slices"
	"strings"

	appsv1 "github.com/openshift/api/apps/v1"
	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
)

// Streams are the image streams that the triggers of a configuration name, as <namespace>/<name>.
func Streams(dc *appsv1.DeploymentConfig) (streams []string) {
	for _, trigger := range dc.Spec.Triggers {
		if params := trigger.ImageChangeParams; params != nil {
			namespace, stream, _ := source(dc, params)
			streams = append(streams, namespace+"/"+stream)
		}
	}
	return streams
}

// source is the tag that a trigger follows.
func source(dc *appsv1.DeploymentConfig, params *appsv1.DeploymentTriggerImageChangeParams) (namespace, stream, tag string) {
	if namespace = params.From.Namespace; namespace == "" {
		namespace = dc.Namespace
	}
	stream, tag, _ = strings.Cut(params.From.Name, ":")
	return namespace, stream, tag
}

// Forced says for a trigger that is not automatic whether the present image is wanted nevertheless.
type Forced func(*appsv1.DeploymentTriggerImageChangeParams) bool

// BringImages puts the present images of tags into the template of a configuration and says whether that changed anything. Triggers that
// are not automatic are left alone, except before the first deployment, which needs an image, and as force says (nil: never). A stream that
// find does not know, or a tag without image, changes nothing.
func BringImages(dc *appsv1.DeploymentConfig, force Forced, find func(namespace, name string) *imagev1.ImageStream) (changed bool) {
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
		image := Latest(find(namespace, stream), tag)
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

// Latest is what pods pull for a tag: the newest image of its history, from the registry of the cluster where the tag's policy is Local.
// It is empty where there is none.
func Latest(stream *imagev1.ImageStream, tag string) string {
	if stream == nil {
		return ""
	}
	i := slices.IndexFunc(stream.Status.Tags, func(t imagev1.NamedTagEventList) bool { return t.Tag == tag })
	if i < 0 || len(stream.Status.Tags[i].Items) == 0 {
		return ""
	}
	newest := stream.Status.Tags[i].Items[0]
	local := slices.ContainsFunc(stream.Spec.Tags, func(t imagev1.TagReference) bool {
		return t.Name == tag && t.ReferencePolicy.Type == imagev1.LocalTagReferencePolicy
	})
	if local && newest.Image != "" && stream.Status.DockerImageRepository != "" {
		return stream.Status.DockerImageRepository + "@" + newest.Image
	}
	return newest.DockerImageReference
}
