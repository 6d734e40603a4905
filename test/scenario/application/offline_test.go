package application

import (
	"context"
	"fmt"
	"maps"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/test/kit"
)

// offline lists the images of the applications that the test runs on a machine without a network.
var offline = []string{"postgresql", "ruby", "python", "nodejs", "pipeline-runner", "postgresql-apb"}

// The machine has no network. It already has the packages for the images, and it serves the
// applications' sources and dependencies. A single command creates the images.
func TestBuilderAndCatalogNeedNoNetwork(t *testing.T) {
	for _, name := range selected([]string{"offline"}, nil) {
		t.Run(name, runOffline)
	}
}

func runOffline(t *testing.T) {
	c := kit.Start(t, kit.Options{})
	packages := c.DownloadSamples("postgresql", "ruby", "python", "nodejs", "pipeline-runner", "apb-base")
	rails, django, express := blogs[0].publish(t, c), blogs[1].publish(t, c), publishExpress(t, c)
	disconnect(t, c)
	c.MustSlipway(append([]string{"samples", "build", "--from", packages}, offline...)...)
	variables := django.trusted()
	maps.Copy(variables, map[string]string{"NPM_MIRROR": express.mirror})
	setBuildDefaults(t, c, variables)

	for _, application := range []struct {
		name  string
		check func(*testing.T, *kit.Cluster)
	}{
		{"database", checkOrderedTemplate},
		{"bundle", checkBoundBundle},
		{"pipeline", checkApproval},
		{"express", func(t *testing.T, c *kit.Cluster) { checkExpress(t, c, express) }},
		{"django", func(t *testing.T, c *kit.Cluster) { blogs[1].check(t, c, django) }},
		{"rails", func(t *testing.T, c *kit.Cluster) { blogs[0].check(t, c, rails) }},
	} {
		t.Run(application.name, func(t *testing.T) {
			project := c.For(t).In("offline-" + application.name)
			project.OC("new-project", project.Namespace, "--skip-config-write")
			application.check(t, project)
			project.OC("delete", "project", project.Namespace)
		})
	}
}

// disconnect disconnects the machine from its network, and checks that it can no longer reach a
// server.
func disconnect(t *testing.T, c *kit.Cluster) {
	t.Helper()
	server, err := net.Listen("tcp", net.JoinHostPort(c.Gateway.String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	reach := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		connection, err := c.Dial(ctx, "tcp4", server.Addr().String())
		if err == nil {
			connection.Close()
		}
		return err
	}
	if err := reach(); err != nil {
		t.Fatal(err)
	}
	if err := c.SetConnected(false); err != nil {
		t.Fatal(err)
	}
	if reach() == nil {
		t.Fatal("the machine still has a network")
	}
}

func checkOrderedTemplate(t *testing.T, c *kit.Cluster) {
	c.OC("new-app", "postgresql-persistent")
	c.OC("rollout", "status", "dc/postgresql")
	pod := c.OnlyPod("name=postgresql").Name
	c.Exec(pod, "bash", "-c", databases["postgresql"].write)
	if got := strings.TrimSpace(c.Exec(pod, "bash", "-c", databases["postgresql"].read)); got != "kept" {
		t.Errorf("the database returns %q", got)
	}
}

// checkBoundBundle orders a database from a bundle, and passes the database's credentials to a
// DeploymentConfig.
func checkBoundBundle(t *testing.T, c *kit.Cluster) {
	c.OC("policy", "add-role-to-user", "edit", "alice")
	apply := func(manifest string) {
		t.Helper()
		if out, err := c.TryOCWithInput(manifest, "--as=alice", "--as-group=system:authenticated", "apply", "-f", "-"); err != nil {
			t.Fatalf("%s %v", out, err)
		}
	}
	c.OC("patch", "clusterservicebroker/ansible-service-broker", "--type=merge", "-p", `{"spec": {"relistRequests": 100}}`)
	c.WaitFor("the class of the bundle", func(context.Context) error {
		names := c.OC("get", "clusterserviceclasses", "-o", "jsonpath={.items[*].spec.externalName}")
		if !strings.Contains(names, "postgresql-apb") {
			return fmt.Errorf("the classes are %s", names)
		}
		return nil
	})
	apply(`{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ServiceInstance, metadata: {name: db}, spec: {
		clusterServiceClassExternalName: postgresql-apb, clusterServicePlanExternalName: prod, parameters: {postgresql_database: shop}}}`)
	waitOutput(c, "serviceinstance/db", "{.status.asyncOpInProgress} {.status.lastConditionState}", "false Ready")
	apply(`{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ServiceBinding, metadata: {name: db}, spec: {instanceRef: {name: db}, secretName: db-credentials}}`)
	waitOutput(c, "servicebinding/db", "{.status.lastConditionState}", "Ready")
	apply(`{apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, metadata: {name: shop}, spec: {replicas: 1, selector: {name: shop},
		triggers: [{type: ConfigChange}, {type: ImageChange, imageChangeParams: {automatic: true, containerNames: [shop],
			from: {kind: ImageStreamTag, namespace: openshift, name: "postgresql:15"}}}],
		template: {metadata: {labels: {name: shop}}, spec: {containers: [{name: shop, image: " ", envFrom: [{secretRef: {name: db-credentials}}],
			command: [sh, -c, "PGPASSWORD=$DB_PASSWORD psql -qAt -h $DB_HOST -p $DB_PORT -U $DB_USER $DB_NAME -c 'SELECT current_database()' && exec sleep 100000"]}]}}}}`)
	c.OC("rollout", "status", "dc/shop")
	if log := c.OC("logs", "dc/shop"); strings.TrimSpace(log) != "shop" {
		t.Errorf("the application reads %q from the database", log)
	}
	c.OC("delete", "servicebinding/db")
	c.OC("delete", "serviceinstance/db")
	if out := c.OC("get", "deployments,services", "-o", "name"); strings.Contains(out, "/postgresql-") {
		t.Errorf("objects of the bundle remain: %s", out)
	}
}

// checkApproval runs a pipeline that waits until a user approves it.
func checkApproval(t *testing.T, c *kit.Cluster) {
	const jenkinsfile = "node { stage('Build') { sh 'echo built' } }\nstage('Approve') { input message: 'Deploy?', id: 'deploy' }\nnode { stage('Deploy') { sh 'echo deployed' } }"
	c.Apply(fmt.Sprintf(`{apiVersion: build.openshift.io/v1, kind: BuildConfig, metadata: {name: app}, spec: {strategy: {jenkinsPipelineStrategy: {jenkinsfile: %q}}}}`, jenkinsfile))
	c.OC("start-build", "app")
	c.WaitFor("the question", func(context.Context) error {
		pending := c.OC("get", "build/app-1", "-o", `jsonpath={.metadata.annotations.openshift\.io/jenkins-pending-input-actions-json}`)
		if !strings.Contains(pending, `"message":"Deploy?"`) {
			return fmt.Errorf("the questions are %q", pending)
		}
		return nil
	})
	c.OC("annotate", "build/app-1", "pipeline.slipway.io/input-deploy=proceed")
	if log := waitBuild(c, "app-1"); !strings.Contains(log, "\nbuilt\n") || !strings.HasSuffix(log, "deployed\nFinished: SUCCESS\n") {
		t.Errorf("the log is\n%s", log)
	}
}
