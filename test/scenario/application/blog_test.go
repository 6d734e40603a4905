package application

import (
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// blog is an application with real dependencies that stores its articles in a database.
type blog struct {
	// image is the builder image, and source is a folder in testdata. template is a template whose
	// database is on a volume, and example is a template with an ephemeral database.
	image, source, template, example string
	// database is the database image, and service is the name of its service.
	database, service string
	// mirror is a command that writes a mirror of the dependencies to a directory, or empty if
	// there is no mirror. parameter is the template parameter for the mirror's URL.
	mirror    []string
	parameter string
	// path is the path of the form that creates an article, and field is the form's field.
	path, field string
	// title is the page's heading. logged contains strings that the build log must contain. If
	// styled is set, the build compiles the page's style sheet.
	title  string
	logged []string
	styled bool
}

// blogs contains the applications. Their dependencies come from Debian packages that `make setup`
// installs.
var blogs = []blog{
	{
		image: "ruby", source: "rails", template: "rails-pgsql-persistent", example: "rails-postgresql-example",
		database: "postgresql", service: "postgresql", styled: true,
		mirror: []string{"ruby", "gems.rb", "rails", "pg", "puma"}, parameter: "RUBYGEM_MIRROR",
		path: "/articles", field: "article[title]", title: "Articles of PostgreSQL",
		logged: []string{"Installing rails 6.1", "---> Compiling assets"},
	},
	{
		image: "python", source: "django", template: "django-psql-persistent", example: "django-psql-example",
		database: "postgresql", service: "postgresql", styled: true,
		mirror: []string{"/usr/bin/python3", "wheels.py", "python3-django", "python3-gunicorn", "python3-psycopg2", "python3-whitenoise"}, parameter: "PIP_INDEX_URL",
		path: "/", field: "title", title: "Articles of postgresql",
		logged: []string{"Django-3.2", "---> Collecting the static files of Django"},
	},
	{
		image: "perl", source: "dancer", template: "dancer-mysql-persistent", example: "dancer-mysql-example",
		database: "mariadb", service: "mysql",
		mirror: []string{"/usr/bin/python3", "perlmodules.py", "libdancer2-perl"}, parameter: "CPAN_MIRROR",
		path: "/", field: "title", title: "Articles of MySQL",
		logged: []string{"Successfully installed libdancer2-perl"},
	},
	{ // Debian has no CakePHP package
		image: "php", source: "cakephp", template: "cakephp-mysql-persistent", example: "cakephp-mysql-example",
		database: "mariadb", service: "mysql",
		parameter: "COMPOSER_MIRROR", path: "/", field: "title", title: "Articles of MySQL",
		logged: []string{"---> Installing packages", "Generating optimized autoload files"},
	},
}

// site contains the URLs of an application's source and of the mirror for its dependencies.
type site struct{ source, mirror string }

// publish serves an application's source and a mirror. write returns the command that writes the
// mirror's files to a directory. If write is nil, there is no mirror.
func publish(t *testing.T, c *kit.Cluster, folder string, write func(dir, address string) []string) site {
	t.Helper()
	source := emptyRepository(t, c)
	source.add("", filepath.Join("testdata", folder))
	source.commit("an application")
	if write == nil {
		return site{source: source.url}
	}
	dir := t.TempDir()
	address := serve(t, c, http.FileServer(http.Dir(dir)))
	command := write(dir, address)
	if output, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("write the mirror: %v\n%s", err, output)
	}
	return site{source.url, address}
}

func (b blog) publish(t *testing.T, c *kit.Cluster) site {
	t.Helper()
	if b.mirror == nil {
		return publish(t, c, b.source, nil)
	}
	return publish(t, c, b.source, func(dir, _ string) []string {
		return append([]string{b.mirror[0], filepath.Join("testdata", b.mirror[1]), dir}, b.mirror[2:]...)
	})
}

// trusted returns environment variables for builds that make pip accept a mirror without TLS.
func (s site) trusted() map[string]string {
	return map[string]string{"PIP_TRUSTED_HOST": strings.Split(strings.TrimPrefix(s.mirror, "http://"), ":")[0]}
}

func TestBuilderServesBlog(t *testing.T) {
	for _, b := range blogs {
		for _, image := range selected([]string{b.image}, nil) {
			t.Run(image, func(t *testing.T) {
				c := kit.Shared(t)
				for _, name := range []string{b.image, b.database} {
					c.BuildSample(name, "")
				}
				s := b.publish(t, c)
				if s.mirror != "" {
					setBuildDefaults(t, c, s.trusted())
				}
				b.check(t, c, s)
				host := b.source + "-example.example.com"
				b.order(c, s, b.example, host, "-p", "DATABASE_SERVICE_NAME=temporary")
				c.WaitVisit("http://"+host+"/", "<h1>"+b.title+"</h1>")
			})
		}
	}
}

// order creates the blog from a template, and returns its build's log.
func (b blog) order(c *kit.Cluster, s site, template, host string, parameters ...string) (log string) {
	c.OC(append([]string{"new-app", template, "-p", "SOURCE_REPOSITORY_URL=" + s.source, "-p", "SOURCE_REPOSITORY_REF=main", "-p", "APPLICATION_DOMAIN=" + host,
		"-p", b.parameter + "=" + s.mirror}, parameters...)...)
	return waitBuild(c, template+"-1")
}

// check builds and serves the blog, and checks that it stores its articles.
func (b blog) check(t *testing.T, c *kit.Cluster, s site) {
	host := b.source + ".example.com"
	log := b.order(c, s, b.template, host)
	for _, want := range b.logged {
		if !strings.Contains(log, want) {
			t.Errorf("the log of the build lacks %q:\n%s", want, log)
		}
	}
	waitOutput(c, "rc/"+b.template+"-1", deploymentPhase, "Complete")
	c.WaitVisit("http://"+host+"/", "<h1>"+b.title+"</h1>")

	client := c.Visitor()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := client.PostForm("http://"+host+b.path, url.Values{b.field: {"Kept & shown"}})
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusFound {
		t.Fatalf("an article is created with %s", response.Status)
	}
	// Recreate the pods of the application and the database. The article must remain, because it is
	// on the volume.
	c.OC("delete", "pod", "--wait", c.OnlyPod("name="+b.service).Name, c.OnlyPod("name="+b.template).Name)
	c.WaitVisit("http://"+host+"/", "<li>Kept &amp; shown</li>")
	if !b.styled {
		return
	}
	page, err := c.Visit(t.Context(), "http://"+host+"/", "")
	if err != nil {
		t.Fatal(err)
	}
	_, style, _ := strings.Cut(page, `href="`)
	style, _, _ = strings.Cut(style, `"`)
	if css, err := c.Visit(t.Context(), "http://"+host+style, ""); err != nil || !strings.Contains(css, "sans-serif") {
		t.Errorf("the compiled style %q is %q, %v", style, css, err)
	}
}
