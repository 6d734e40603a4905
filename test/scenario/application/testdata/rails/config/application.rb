require "bundler/setup"
require "rails"
require "active_record/railtie"
require "action_controller/railtie"
require "action_view/railtie"
require "sprockets/railtie"
Bundler.require(*Rails.groups)

module Blog
  class Application < Rails::Application
    config.load_defaults 6.1
    config.eager_load = true
    config.logger = ActiveSupport::Logger.new($stdout)
    config.public_file_server.enabled = true
    config.assets.compile = false # the build compiles them
    config.active_record.dump_schema_after_migration = false
  end
end
