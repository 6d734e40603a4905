package samples

import "fmt"

// framework describes a template for an application with a database.
type framework struct {
	// Name is the template's name. Framework is the first part of this name, and also the name of
	// the database user.
	Name, Framework, DisplayName, Icon string
	// Builder, BuilderName and BuilderVersion identify the image stream of the language.
	Builder, BuilderName, BuilderVersion string
	Database                             database
	// Repository is the default source repository. Health is the URL path for health checks. Hook
	// is the command that prepares the database before a deployment, or "".
	Repository, Health, Hook string
	// Prefixed means that the pods receive the database's values a second time, in environment
	// variables with the names that the database image uses.
	Prefixed   bool
	Parameters []setting
}

// setting describes an application parameter. It becomes an environment variable of the
// application's pods, its builds, or both.
type setting struct {
	// Name is the parameter's name. Variable is the pods' environment variable, and Build is the
	// builds' environment variable. Secret is the key in the application's secret, or "".
	Name, Variable, Build, Secret string
	DisplayName, Description      string
	// Value is the parameter's default value. From is the pattern, such as [a-z]{8}, from which the
	// template generates the default value.
	Value, From string
}

const tokenPattern = "[a-zA-Z0-9]{50}"

// kinds lists the frameworks, without their databases and builders.
var kinds = []struct {
	framework
	database string
	// names lists the template's names: first with an ephemeral database, then with a persistent
	// database.
	names [2]string
}{
	{
		framework: framework{
			Framework: "django", DisplayName: "Django", Icon: "python", Builder: "python", Health: "/health",
			Repository: "https://github.com/sclorg/django-ex.git",
			Parameters: []setting{
				{Name: "DATABASE_ENGINE", Variable: "DATABASE_ENGINE", DisplayName: "Database Engine", Description: "The engine of the database.", Value: "postgresql"},
				{Name: "APP_CONFIG", Variable: "APP_CONFIG", DisplayName: "Application Configuration File Path", Description: "The path of a Gunicorn configuration file, relative to the source."},
				{Name: "DJANGO_SECRET_KEY", Variable: "DJANGO_SECRET_KEY", Secret: "django-secret-key", DisplayName: "Django Secret Key", Description: "The key that signs Django's data.", From: tokenPattern},
				{Name: "PIP_INDEX_URL", Build: "PIP_INDEX_URL", DisplayName: "Custom PyPi Index URL", Description: "The index of Python packages for builds."},
			},
		},
		database: "postgresql", names: [2]string{"django-psql-example", "django-psql-persistent"},
	},
	{
		framework: framework{
			Framework: "cakephp", DisplayName: "CakePHP", Icon: "php", Builder: "php", Health: "/health.php",
			Repository: "https://github.com/sclorg/cakephp-ex.git", Hook: "[./migrate-database.sh]",
			Parameters: []setting{
				{Name: "DATABASE_ENGINE", Variable: "DATABASE_ENGINE", DisplayName: "Database Engine", Description: "The engine of the database.", Value: "mysql"},
				{Name: "CAKEPHP_SECRET_TOKEN", Variable: "CAKEPHP_SECRET_TOKEN", Secret: "cakephp-secret-token", DisplayName: "CakePHP Secret Token", Description: "The token for session hashes.", From: tokenPattern},
				{Name: "CAKEPHP_SECURITY_SALT", Variable: "CAKEPHP_SECURITY_SALT", Secret: "cakephp-security-salt", DisplayName: "CakePHP Security Salt", Description: "The salt for session hashes.", From: "[a-zA-Z0-9]{40}"},
				{Name: "CAKEPHP_SECURITY_CIPHER_SEED", Variable: "CAKEPHP_SECURITY_CIPHER_SEED", Secret: "cakephp-security-cipher-seed", DisplayName: "CakePHP Security Cipher Seed", Description: "The seed for session ciphers.", From: "[0-9]{30}"},
				{Name: "OPCACHE_REVALIDATE_FREQ", Variable: "OPCACHE_REVALIDATE_FREQ", DisplayName: "OPcache Revalidation Frequency", Description: "The interval in seconds at which files are checked for changes.", Value: "2"},
				{Name: "COMPOSER_MIRROR", Build: "COMPOSER_MIRROR", DisplayName: "Custom Composer Mirror URL", Description: "The repository of PHP packages for builds."},
			},
		},
		database: "mysql", names: [2]string{"cakephp-mysql-example", "cakephp-mysql-persistent"},
	},
	{
		framework: framework{
			Framework: "dancer", DisplayName: "Dancer", Icon: "perl", Builder: "perl", Health: "/health",
			Repository: "https://github.com/sclorg/dancer-ex.git", Prefixed: true,
			Parameters: []setting{
				{Name: "PERL_APACHE2_RELOAD", Variable: "PERL_APACHE2_RELOAD", DisplayName: "Perl Module Reload", Description: "If true, changed modules are reloaded."},
				{Name: "SECRET_KEY_BASE", Variable: "SECRET_KEY_BASE", Secret: "keybase", DisplayName: "Secret Key", Description: "The key that signs sessions.", From: "[a-z0-9]{127}"},
				{Name: "CPAN_MIRROR", Build: "CPAN_MIRROR", DisplayName: "Custom CPAN Mirror URL", Description: "The mirror of Perl modules for builds."},
			},
		},
		database: "mysql", names: [2]string{"dancer-mysql-example", "dancer-mysql-persistent"},
	},
	{
		framework: framework{
			Framework: "rails", DisplayName: "Ruby on Rails", Icon: "ruby", Builder: "ruby", Health: "/",
			Repository: "https://github.com/sclorg/rails-ex.git", Hook: "[./migrate-database.sh]", Prefixed: true,
			Parameters: []setting{
				{Name: "SECRET_KEY_BASE", Variable: "SECRET_KEY_BASE", Secret: "keybase", DisplayName: "Secret Key", Description: "The key that signs sessions.", From: "[a-z0-9]{127}"},
				{Name: "APPLICATION_USER", Variable: "APPLICATION_USER", Secret: "application-user", DisplayName: "Application Username", Description: "The user that can change pages of the example.", Value: "openshift"},
				{Name: "APPLICATION_PASSWORD", Variable: "APPLICATION_PASSWORD", Secret: "application-password", DisplayName: "Application Password", Description: "The password of this user.", Value: "secret"},
				{Name: "RAILS_ENV", Variable: "RAILS_ENV", DisplayName: "Rails Environment", Description: "The environment of Rails: production, development or test.", Value: "production"},
				{Name: "RUBYGEM_MIRROR", Build: "RUBYGEM_MIRROR", DisplayName: "Custom RubyGems Mirror URL", Description: "The mirror of gems for builds."},
			},
		},
		database: "postgresql", names: [2]string{"rails-postgresql-example", "rails-pgsql-persistent"},
	},
}

// frameworks returns the framework templates whose image streams exist.
func frameworks(streams []stream) (all []entry, err error) {
	byName := map[string]stream{}
	for _, stream := range streams {
		byName[stream.Name] = stream
	}
	for _, kind := range kinds {
		builder, ok := byName[kind.Builder]
		base, exists := byName[kind.database]
		if !ok || !exists {
			return nil, fmt.Errorf("fill in template %q: neither image stream %q nor %q exists", kind.names[0], kind.Builder, kind.database)
		}
		for i, name := range kind.names {
			values := kind.framework
			values.Name, values.Database = name, databaseOf(base, i == 1)
			values.BuilderName, values.BuilderVersion = builder.DisplayName, builder.Version
			all = append(all, entry{"framework.yaml", name, values})
		}
	}
	return all, nil
}
