// Package deployment has the controllers of DeploymentConfigs: one makes a ReplicationController for each version and keeps the number
// of pods, one gives each ReplicationController its deployer pod and follows it, one brings new images into configurations. All that they
// know stands in the API, so they go on after any end where they were.
//
// Source: OpenShift Container Platform 3.9 Architecture, 3.7.2 and 3.6.6; the phases, annotations and conditions are those of OpenShift
// 3.11.
package deployment

import (
	"context"
	"fmt"
	"time"

	appsv1 "github.com/openshift/api/apps/v1"
	appsclient "github.com/openshift/client-go/apps/clientset/versioned"
	appsscheme "github.com/openshift/client-go/apps/clientset/versioned/scheme"
	appsinformers "github.com/openshift/client-go/apps/informers/externalversions"
	imageclient "github.com/openshift/client-go/image/clientset/versioned"
	imageinformers "github.com/openshift/client-go/image/informers/externalversions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/apigroup/image/pull"
	"github.com/slipway-platform/slipway/controller"
)

// Controllers is the part that deploys.
type Controllers struct {
	// Client is a connection with every right.
	Client *rest.Config
	// Image is the image of deployer pods. CustomImage is that of Custom strategies that have a command and no image of their own.
	Image, CustomImage string
}

// Name is the part's name.
func (c *Controllers) Name() string { return "deployments" }

// firstRetry is the delay after the first failure, mostly a conflict with another writer.
const firstRetry = 50 * time.Millisecond

// Run deploys until ctx ends; ready is called when all that exists is known.
func (c *Controllers) Run(ctx context.Context, ready func()) error {
	config := rest.CopyConfig(c.Client)
	config.QPS, config.Burst = 100, 200
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect for deployments: %w", err)
	}
	// OpenShift's service account for deployments: pods that it makes get the security context that their own service account may have.
	creator, err := coreclient.NewForConfig(controller.AsServiceAccount(config, "openshift-infra", "deployment-controller"))
	if err != nil {
		return fmt.Errorf("connect for deployments: %w", err)
	}
	apps, err := appsclient.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect for deployments: %w", err)
	}
	images, err := imageclient.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect for deployments: %w", err)
	}
	with := func(label string) informers.SharedInformerOption {
		return informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = label })
	}
	deploymentFactory := informers.NewSharedInformerFactoryWithOptions(kube, 0, with(appsv1.DeploymentConfigAnnotation))
	podFactory := informers.NewSharedInformerFactoryWithOptions(kube, 0, with(appsv1.DeployerPodForDeploymentLabel))
	appsFactory := appsinformers.NewSharedInformerFactory(apps, 0)
	imageFactory := imageinformers.NewSharedInformerFactory(images, 0)

	recorder, shutdown := controller.Recorder(ctx, kube, appsscheme.Scheme, "deploymentconfig-controller")
	defer shutdown()

	configs, deployments := appsFactory.Apps().V1().DeploymentConfigs(), deploymentFactory.Core().V1().ReplicationControllers()
	pods, streams := podFactory.Core().V1().Pods(), imageFactory.Image().V1().ImageStreams()
	set := controller.Set{
		(&configLoop{kube.CoreV1(), apps.AppsV1(), configs.Lister(), deployments.Lister(), recorder}).loop(configs.Informer(), deployments.Informer()),
		(&deployerLoop{c, kube.CoreV1(), creator, deployments.Lister(), pods.Lister()}).loop(deployments.Informer(), pods.Informer()),
	}
	triggered, err := (&imageLoop{apps.AppsV1(), configs.Lister(), streams.Lister(), pull.Reviewed(kube.AuthorizationV1()), recorder}).loop(configs.Informer(), streams.Informer())
	if err != nil {
		return err
	}
	set = append(set, triggered)
	defer controller.Start(ctx, deploymentFactory, podFactory, appsFactory, imageFactory)()
	return set.Run(ctx, ready)
}
