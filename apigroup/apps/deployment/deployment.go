// Package deployment contains the DeploymentConfig controllers. configController creates a
// ReplicationController for each version and scales it, deployerController runs deployer pods, and
// imageChangeController updates images in configurations. They keep all state in the API, so they
// can be restarted at any time.
//
// Source: OpenShift Container Platform 3.9 Architecture, 3.7.2 and 3.6.6; the phases, annotations
// and conditions are the same as in OpenShift 3.11.
package deployment

import (
	"context"
	"fmt"
	"time"

	appsv1 "github.com/openshift/api/apps/v1"
	appsclient "github.com/openshift/client-go/apps/clientset/versioned"
	appsscheme "github.com/openshift/client-go/apps/clientset/versioned/scheme"
	appsinformers "github.com/openshift/client-go/apps/informers/externalversions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"

	"github.com/slipway-platform/slipway/apigroup/image/pull"
	"github.com/slipway-platform/slipway/controller"
)

// Controllers is the component that runs the package's controllers.
type Controllers struct {
	// Deps provides the shared clients and caches.
	Deps *controller.Deps
	// Image is the image of deployer pods. CustomImage is the image for Custom strategies that set
	// a command but no image.
	Image, CustomImage string
}

// Name implements the component interface.
func (c *Controllers) Name() string { return "deployments" }

// minBackoff is the backoff after the first failure, which is usually a conflict.
const minBackoff = 50 * time.Millisecond

// Run runs the controllers until ctx is done. It calls ready when the caches have synced.
func (c *Controllers) Run(ctx context.Context, ready func()) error {
	kube := c.Deps.Kube
	// creator acts as OpenShift's service account for deployments. The pods that it creates use the
	// security context constraints that their own service account is allowed to use.
	creator, err := c.Deps.AsServiceAccount("openshift-infra", "deployment-controller")
	if err != nil {
		return fmt.Errorf("create client for deployments: %w", err)
	}
	apps, err := appsclient.NewForConfig(c.Deps.Config)
	if err != nil {
		return fmt.Errorf("create client for deployments: %w", err)
	}
	with := func(label string) informers.SharedInformerOption {
		return informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = label })
	}
	deploymentFactory := informers.NewSharedInformerFactoryWithOptions(kube, 0, with(appsv1.DeploymentConfigAnnotation))
	podFactory := informers.NewSharedInformerFactoryWithOptions(kube, 0, with(appsv1.DeployerPodForDeploymentLabel))
	appsFactory := appsinformers.NewSharedInformerFactory(apps, 0)

	recorder, shutdown := controller.Recorder(ctx, kube, appsscheme.Scheme, "deploymentconfig-controller")
	defer shutdown()

	configs, deployments := appsFactory.Apps().V1().DeploymentConfigs(), deploymentFactory.Core().V1().ReplicationControllers()
	pods, streams := podFactory.Core().V1().Pods(), c.Deps.ImageInformers.Image().V1().ImageStreams()
	set := controller.Manager{
		(&configController{kube.CoreV1(), apps.AppsV1(), configs.Lister(), deployments.Lister(), recorder}).controller(configs.Informer(), deployments.Informer()),
		(&deployerController{c, kube.CoreV1(), creator, deployments.Lister(), pods.Lister(), recorder}).controller(deployments.Informer(), pods.Informer()),
	}
	imageChanges, err := (&imageChangeController{apps.AppsV1(), configs.Lister(), streams.Lister(), pull.Reviewed(kube.AuthorizationV1()), recorder}).controller(configs.Informer(), streams.Informer())
	if err != nil {
		return err
	}
	set = append(set, imageChanges)
	c.Deps.Start()
	defer controller.Start(ctx, deploymentFactory, podFactory, appsFactory)()
	return set.Run(ctx, ready)
}
