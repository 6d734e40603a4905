// Package buildcontroller has the controllers of builds: one starts the first build of each configuration and removes old ones, one starts builds when an image has
// changed, and one gives each build its pod and follows it. All that they know stands in the API, so they go on after
// any end where they were.
//
// Source: OpenShift Container Platform 3.9 Architecture, 3.6.1 Builds, and 3.11 Cluster Administration, chapter 14; phases, reasons and messages are those of
// OpenShift 3.11.
package buildcontroller

import (
	"context"
	"fmt"
	"time"

	buildv1 "github.com/openshift/api/build/v1"
	buildclient "github.com/openshift/client-go/build/clientset/versioned"
	buildscheme "github.com/openshift/client-go/build/clientset/versioned/scheme"
	buildinformers "github.com/openshift/client-go/build/informers/externalversions"
	imageclient "github.com/openshift/client-go/image/clientset/versioned"
	imageinformers "github.com/openshift/client-go/image/informers/externalversions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/controller"
)

// Controllers is the part that builds.
type Controllers struct {
	// Client is a connection with every right.
	Client *rest.Config
	// Image is the image of build pods, except those of custom builds.
	Image string
	// SeccompProfile is the name of a filter of system calls that every node has, under which a builder can start containers.
	SeccompProfile string
	// CacheDriver is the CSI driver of volumes that a node keeps for the next pod that names them; empty: builds begin without what earlier ones have made.
	CacheDriver string
	// CacheLabel is the label of the nodes that have CacheDriver.
	CacheLabel string
	// Version is the platform's, which builders are told.
	Version string
	// Settings are the administrator's; they may change while the part runs, and count for the builds that begin afterwards.
	Settings *Settings
	// Metrics, if set, show the builds.
	Metrics *Metrics
}

// Name is the part's name.
func (c *Controllers) Name() string { return "builds" }

// firstRetry is the delay after the first failure, mostly a conflict with another writer; lastRetry is the longest one.
const firstRetry, lastRetry = 50 * time.Millisecond, 30 * time.Second

// Run builds until ctx ends; ready is called when all that exists is known.
func (c *Controllers) Run(ctx context.Context, ready func()) error {
	config := rest.CopyConfig(c.Client)
	config.QPS, config.Burst = 100, 200
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect for builds: %w", err)
	}
	// OpenShift's service account for builds: the pods that it makes may have more rights on their node than those of the users whose builds they are.
	creator, err := coreclient.NewForConfig(controller.AsServiceAccount(config, "openshift-infra", "build-controller"))
	if err != nil {
		return fmt.Errorf("connect for builds: %w", err)
	}
	builds, err := buildclient.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect for builds: %w", err)
	}
	images, err := imageclient.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect for builds: %w", err)
	}
	podFactory := informers.NewSharedInformerFactoryWithOptions(kube, 0,
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = buildv1.BuildLabel }))
	buildFactory := buildinformers.NewSharedInformerFactory(builds, 0)
	imageFactory := imageinformers.NewSharedInformerFactory(images, 0)

	recorder, shutdown := controller.Recorder(ctx, kube, buildscheme.Scheme, "build-controller")
	defer shutdown()

	made, pods := buildFactory.Build().V1().Builds(), podFactory.Core().V1().Pods()
	configs, streams := buildFactory.Build().V1().BuildConfigs(), imageFactory.Image().V1().ImageStreams()
	if err := made.Informer().AddIndexers(buildIndexers()); err != nil {
		return fmt.Errorf("index builds by configuration: %w", err)
	}
	c.Metrics.show(made.Lister())
	known, may := made.Informer().GetIndexer(), rights{kube.AuthorizationV1()}
	building := &buildLoop{
		maker: maker{c, kube.CoreV1(), kube.CoreV1(), streams.Lister(), configs.Lister(), may}, core: kube.CoreV1(), creator: creator, client: builds.BuildV1(),
		known: known, builds: made.Lister(), pods: pods.Lister(), events: recorder,
	}
	set := controller.Set{
		building.loop(made.Informer(), pods.Informer(), streams.Informer()),
		(&configLoop{builds.BuildV1(), configs.Lister(), known, recorder}).loop(configs.Informer(), made.Informer()),
	}
	triggered, err := (&imageLoop{builds.BuildV1(), configs.Lister(), streams.Lister(), may, recorder}).loop(configs.Informer(), streams.Informer())
	if err != nil {
		return err
	}
	set = append(set, triggered)
	defer controller.Start(ctx, podFactory, buildFactory, imageFactory)()
	return set.Run(ctx, ready)
}
