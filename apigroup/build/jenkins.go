package build

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	appsv1 "github.com/openshift/api/apps/v1"
	buildv1 "github.com/openshift/api/build/v1"
	imagev1 "github.com/openshift/api/image/v1"
	templatev1 "github.com/openshift/api/template/v1"
	templateclient "github.com/openshift/client-go/template/clientset/versioned/typed/template/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
	clientrest "k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/apigroup/image/pull"
	"github.com/slipway-platform/slipway/apigroup/template/process"
	"github.com/slipway-platform/slipway/apiserver"
)

// JenkinsPlugin is the name of the admission plugin that instantiates the Jenkins template.
const JenkinsPlugin = "openshift.io/JenkinsBootstrapper"

// Jenkins configures the Jenkins server of projects with pipelines (jenkinsPipelineConfig). The
// objects of the template are created in a project when its first pipeline is created or started.
type Jenkins struct {
	// Namespace and Template identify the template.
	Namespace, Template string
	// Service is the name of a service in the template. A project that contains this service
	// already has a Jenkins server.
	Service string
	// Parameters sets the template's parameters.
	Parameters map[string]string
}

// jenkinsAdmission is the JenkinsBootstrapper admission plugin. It creates a TemplateInstance that
// has the service's name and the user's permissions. The TemplateInstance is never deleted, even if
// the project has no more pipelines. While an image of the template does not exist, the plugin
// creates nothing, and Slipway's own runner runs the pipelines.
//
// Source: OpenShift Container Platform 3.9 Architecture, 3.5.1.4 Pipeline Build.
type jenkinsAdmission struct {
	*admission.Handler
	*buildStore
	jenkins *Jenkins
}

var _ admission.ValidationInterface = &jenkinsAdmission{}

// admission returns the admission plugin, or no plugin if projects do not have their own Jenkins.
func (j *Jenkins) admission(shared *buildStore) []apiserver.Admission {
	if j == nil {
		return nil
	}
	return []apiserver.Admission{{Name: JenkinsPlugin, New: func(io.Reader) (admission.Interface, error) {
		return &jenkinsAdmission{admission.NewHandler(admission.Create), shared, j}, nil
	}}}
}

// Validate creates a Jenkins server in a project that requires one.
func (j *jenkinsAdmission) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	ctx = request.WithNamespace(ctx, a.GetNamespace())
	if pipeline, err := j.isPipeline(ctx, a); err != nil || !pipeline || a.IsDryRun() {
		return err
	}
	_, err := j.deps.Kube.CoreV1().Services(a.GetNamespace()).Get(ctx, j.jenkins.Service, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	if err := j.provision(ctx, a.GetNamespace(), a.GetUserInfo()); err != nil {
		return admission.NewForbidden(a, fmt.Errorf("create Jenkins from template %q of project %q (jenkinsPipelineConfig of master-config.yaml): %w",
			j.jenkins.Template, j.jenkins.Namespace, err))
	}
	return nil
}

// isPipeline reports whether a user creates or starts a pipeline. The result is false for the
// platform's controllers, which start builds of configurations that users have created.
func (j *jenkinsAdmission) isPipeline(ctx context.Context, a admission.Attributes) (bool, error) {
	if a.GetResource().GroupResource() != buildv1.Resource("buildconfigs") || strings.HasPrefix(a.GetUserInfo().GetName(), "system:serviceaccount:openshift-infra:") {
		return false, nil
	}
	switch a.GetSubresource() {
	case "":
		config, ok := a.GetObject().(*buildv1.BuildConfig)
		return ok && config.Spec.Strategy.JenkinsPipelineStrategy != nil, nil
	case "instantiate":
		config, err := j.config(ctx, a.GetName())
		return err == nil && config.Spec.Strategy.JenkinsPipelineStrategy != nil, err
	}
	return false, nil
}

func (j *jenkinsAdmission) provision(ctx context.Context, namespace string, u user.Info) error {
	platform, err := templateclient.NewForConfig(j.deps.Loopback)
	if err != nil {
		return err
	}
	template, err := platform.Templates(j.jenkins.Namespace).Get(ctx, j.jenkins.Template, metav1.GetOptions{})
	if err != nil {
		return err
	}
	processed, err := j.jenkins.prepare(template)
	if err != nil {
		return err
	}
	if image, err := j.missingImage(ctx, processed, namespace); err != nil || image != "" {
		if err == nil {
			warning.AddWarning(ctx, "", fmt.Sprintf("the project gets no Jenkins, because the image stream tag %s has no image; Slipway's own runner runs the pipeline", image))
		}
		return err
	}
	limited := clientrest.CopyConfig(j.deps.Loopback)
	limited.Impersonate = clientrest.ImpersonationConfig{UserName: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups(), Extra: u.GetExtra()}
	client, err := templateclient.NewForConfig(limited)
	if err != nil {
		return err
	}
	_, err = client.TemplateInstances(namespace).Create(ctx, &templatev1.TemplateInstance{
		ObjectMeta: metav1.ObjectMeta{Name: j.jenkins.Service}, Spec: templatev1.TemplateInstanceSpec{Template: *template},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) { // the existing TemplateInstance creates the service
		return nil
	}
	return err
}

// prepare sets the template's parameters, and returns the processed template. It returns an error
// if the template lacks one of the parameters or the service.
func (j *Jenkins) prepare(template *templatev1.Template) (processed *templatev1.Template, err error) {
	for name, value := range j.Parameters {
		i := slices.IndexFunc(template.Parameters, func(p templatev1.Parameter) bool { return p.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("the template has no parameter %q", name)
		}
		template.Parameters[i].Value, template.Parameters[i].Generate = value, ""
	}
	processed = template.DeepCopy()
	if problems := process.Template(processed); len(problems) > 0 {
		return nil, problems.ToAggregate()
	}
	for _, object := range processed.Objects {
		var service metav1.PartialObjectMetadata
		if err := json.Unmarshal(object.Raw, &service); err == nil && service.Kind == "Service" && service.Name == j.Service {
			return processed, nil
		}
	}
	return nil, fmt.Errorf("the template contains no service %q", j.Service)
}

// missingImage returns the first image stream tag that triggers a DeploymentConfig of a processed
// template but has no image. It returns "" if all tags have images.
func (s buildStore) missingImage(ctx context.Context, processed *templatev1.Template, namespace string) (string, error) {
	for _, from := range imagesOf(processed, namespace) {
		object, err := s.deps.Stores[imagev1.Resource("imagestreams")].Get(request.WithNamespace(ctx, from.namespace), from.stream, &metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return "", err
		}
		if stream, _ := object.(*imagev1.ImageStream); err != nil || pull.LatestSpec(stream, from.tag) == "" {
			return from.String(), nil
		}
	}
	return "", nil
}

// streamTag identifies an image stream tag.
type streamTag struct{ namespace, stream, tag string }

func (t streamTag) String() string { return t.namespace + "/" + t.stream + ":" + t.tag }

// imagesOf returns the image stream tags that trigger the DeploymentConfigs of a processed
// template, except the tags of the template's own image streams.
func imagesOf(processed *templatev1.Template, namespace string) (tags []streamTag) {
	own := map[string]bool{} // namespaces and names of image streams
	for _, object := range processed.Objects {
		var config appsv1.DeploymentConfig
		if json.Unmarshal(object.Raw, &config) != nil {
			continue // an object of another kind can have fields of other types
		}
		switch config.Kind {
		case "ImageStream":
			own[cmp.Or(config.Namespace, namespace)+"/"+config.Name] = true
		case "DeploymentConfig":
			for _, trigger := range config.Spec.Triggers {
				if image := trigger.ImageChangeParams; image != nil && image.From.Kind == "ImageStreamTag" {
					stream, tag, _ := strings.Cut(image.From.Name, ":")
					tags = append(tags, streamTag{cmp.Or(image.From.Namespace, namespace), stream, cmp.Or(tag, "latest")})
				}
			}
		}
	}
	return slices.DeleteFunc(tags, func(t streamTag) bool { return own[t.namespace+"/"+t.stream] })
}
