// Package buildcontroller contains the build controllers. configController instantiates each
// configuration's first build and deletes old builds, imageChangeController instantiates builds
// when an image changes, and buildController runs builds in pods. They keep all state in the API,
// so they can be restarted at any time.
//
// Source: OpenShift Container Platform 3.9 Architecture, 3.6.1 Builds, and 3.11 Cluster
// Administration, chapter 14; phases, reasons and messages are the same as in OpenShift 3.11.
package buildcontroller

import (
	"context"
	"fmt"
	"time"

	buildv1 "github.com/openshift/api/build/v1"
	buildclient "github.com/openshift/client-go/build/clientset/versioned"
	buildscheme "github.com/openshift/client-go/build/clientset/versioned/scheme"
	buildinformers "github.com/openshift/client-go/build/informers/externalversions"
	templateclient "github.com/openshift/client-go/template/clientset/versioned"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"

	"github.com/slipway-platform/slipway/controller"
)

// Controllers is the component that runs the package's controllers.
type Controllers struct {
	// Deps provides the shared clients and caches.
	Deps *controller.Deps
	// Image is the builder image. All build pods except the pods of custom builds use it.
	Image string
	// SeccompProfile is the name of a seccomp profile that allows a builder to start containers.
	// The profile exists on every node.
	SeccompProfile string
	// CacheDriver is the CSI driver for volumes that a node keeps and mounts in later pods. If
	// CacheDriver is empty, layers are not cached.
	CacheDriver string
	// CacheLabel is the label of nodes on which CacheDriver runs.
	CacheLabel string
	// Version is the platform version that is passed to builders.
	Version string
	// JenkinsService is the name of the Jenkins service in a project. JenkinsProvisioned means that
	// a TemplateInstance with this name can create the service. Slipway does not run the pipelines
	// of projects that have this TemplateInstance.
	JenkinsService     string
	JenkinsProvisioned bool
	// Settings stores the administrator's settings, which can change at run time. A change applies
	// to builds that start later.
	Settings *SettingsStore
	// Metrics, if set, counts the builds.
	Metrics *Metrics
}

// Name implements the component interface.
func (c *Controllers) Name() string { return "builds" }

// minBackoff is the delay after the first failure, which is usually a conflict. maxBackoff is the
// maximum delay.
const minBackoff, maxBackoff = 50 * time.Millisecond, 30 * time.Second

// Run runs the controllers until ctx is done. It calls ready when the caches have synced.
func (c *Controllers) Run(ctx context.Context, ready func()) error {
	kube := c.Deps.Kube
	// creator uses OpenShift's service account for builds. Pods that it creates can have more
	// privileges on their node than users' pods.
	creator, err := c.Deps.AsServiceAccount("openshift-infra", "build-controller")
	if err != nil {
		return fmt.Errorf("create client for builds: %w", err)
	}
	builds, err := buildclient.NewForConfig(c.Deps.Config)
	if err != nil {
		return fmt.Errorf("create client for builds: %w", err)
	}
	templates, err := templateclient.NewForConfig(c.Deps.Config)
	if err != nil {
		return fmt.Errorf("create client for templates: %w", err)
	}
	kubeInformers := informers.NewSharedInformerFactoryWithOptions(kube, 0,
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = buildv1.BuildLabel }))
	buildInformerFactory := buildinformers.NewSharedInformerFactory(builds, 0)

	recorder, shutdown := controller.Recorder(ctx, kube, buildscheme.Scheme, "build-controller")
	defer shutdown()

	buildInformer, pods := buildInformerFactory.Build().V1().Builds(), kubeInformers.Core().V1().Pods()
	services := c.Deps.Informers.Core().V1().Services()
	configs, streams := buildInformerFactory.Build().V1().BuildConfigs(), c.Deps.ImageInformers.Image().V1().ImageStreams()
	if err := buildInformer.Informer().AddIndexers(buildIndexers()); err != nil {
		return fmt.Errorf("index builds by configuration: %w", err)
	}
	c.Metrics.show(buildInformer.Lister())
	indexer, access := buildInformer.Informer().GetIndexer(), streamAccess{kube.AuthorizationV1()}
	runner := &buildController{
		podFactory: podFactory{c, kube.CoreV1(), kube.CoreV1(), streams.Lister(), configs.Lister(), access}, core: kube.CoreV1(), creator: creator, client: builds.BuildV1(),
		indexer: indexer, builds: buildInformer.Lister(), pods: pods.Lister(), services: services.Lister(), templates: templates.TemplateV1(), events: recorder,
		trigger: &controller.Trigger{},
	}
	set := controller.Manager{
		runner.controller(buildInformer.Informer(), pods.Informer(), streams.Informer(), services.Informer()),
		(&configController{builds.BuildV1(), configs.Lister(), indexer, recorder}).controller(configs.Informer(), buildInformer.Informer()),
	}
	imageChanges, err := (&imageChangeController{builds.BuildV1(), configs.Lister(), streams.Lister(), access, recorder}).controller(configs.Informer(), streams.Informer())
	if err != nil {
		return err
	}
	set = append(set, imageChanges)
	c.Deps.Start()
	defer controller.Start(ctx, kubeInformers, buildInformerFactory)()
	return set.Run(ctx, ready)
}
