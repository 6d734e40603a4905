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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/slipway-platform/slipway/controller"
)

// Controllers is the part that deploys.
type Controllers struct {
	// Client is a connection with every right.
	Client *rest.Config
	// Image is the image of deployer pods, and Command what they run in it.
	Image   string
	Command []string
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
	creator, err := coreclient.NewForConfig(asController(config))
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

	events := record.NewBroadcaster(record.WithContext(ctx))
	events.StartRecordingToSink(&coreclient.EventSinkImpl{Interface: kube.CoreV1().Events("")})
	defer events.Shutdown()
	recorder := events.NewRecorder(appsscheme.Scheme, corev1.EventSource{Component: "deploymentconfig-controller"})

	configs, deployments := appsFactory.Apps().V1().DeploymentConfigs(), deploymentFactory.Core().V1().ReplicationControllers()
	pods, streams := podFactory.Core().V1().Pods(), imageFactory.Image().V1().ImageStreams()
	set := controller.Set{
		(&configLoop{kube.CoreV1(), apps.AppsV1(), configs.Lister(), deployments.Lister(), recorder}).loop(configs.Informer(), deployments.Informer()),
		(&deployerLoop{c, kube.CoreV1(), creator, deployments.Lister(), pods.Lister()}).loop(deployments.Informer(), pods.Informer()),
	}
	triggered, err := (&imageLoop{apps.AppsV1(), configs.Lister(), streams.Lister()}).loop(configs.Informer(), streams.Informer())
	if err != nil {
		return err
	}
	set = append(set, triggered)
	for _, factory := range []interface {
		Start(<-chan struct{})
		Shutdown()
	}{deploymentFactory, podFactory, appsFactory, imageFactory} {
		factory.Start(ctx.Done())
		defer factory.Shutdown()
	}
	return set.Run(ctx, ready)
}

// asController is a connection of the service account that OpenShift has for deployments: pods that it makes get the security context
// that their own service account may have.
func asController(config *rest.Config) *rest.Config {
	const namespace, name = "openshift-infra", "deployment-controller"
	as := rest.CopyConfig(config)
	as.Impersonate = rest.ImpersonationConfig{
		UserName: serviceaccount.MakeUsername(namespace, name),
		Groups:   append(serviceaccount.MakeGroupNames(namespace), user.AllAuthenticated),
	}
	return as
}
