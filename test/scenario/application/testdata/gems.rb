# Writes a mirror of gems into a directory: the installed gems of Debian's packages that have the
# given names, and their dependencies.
#
#   ruby gems.rb DIRECTORY GEM...
require "fileutils"
require "rubygems/indexer"
require "rubygems/package"
require "tmpdir"

def closure(names, found = {})
  names.each do |name|
    next if found[name]

    found[name] = Gem::Specification.find_by_name(name)
    closure(found[name].runtime_dependencies.map(&:name), found)
  end
  found.values
end

# Returns pairs of a path on this machine and a path in the gem. Debian has libraries of some gems in
# the directories of Ruby instead of the gem's own.
def files(spec)
  own = { spec.full_gem_path => ".", spec.extension_dir => "lib" }
  found = own.keys.flat_map { |root| Dir.glob("#{root}/**/*") }
  unless Dir.exist?(File.join(spec.full_gem_path, "lib"))
    own.merge!(RbConfig::CONFIG["vendordir"] => "lib", RbConfig::CONFIG["vendorarchdir"] => "lib")
    package = IO.popen(["dpkg", "-S", spec.loaded_from], &:read).split(":").first
    found += IO.popen(["dpkg", "-L", package], &:readlines).map(&:chomp)
  end
  found.select { |path| File.file?(path) }.filter_map do |path|
    root, prefix = own.find { |root, _| path.start_with?("#{root}/") }
    [path, File.join(prefix, path.delete_prefix("#{root}/")).delete_prefix("./")] if root
  end
end

def build(installed, directory)
  spec = Gem::Specification.load(installed.loaded_from).dup
  Dir.mktmpdir do |work|
    names = files(installed).map do |path, name|
      FileUtils.mkdir_p(File.dirname(File.join(work, name)))
      FileUtils.cp(path, File.join(work, name))
      name
    end
    spec.files, spec.test_files, spec.extra_rdoc_files = names, [], []
    spec.extensions = [] # Debian has compiled them
    spec.executables = spec.executables.select { |name| names.include?(File.join(spec.bindir, name)) }
    spec.email = nil
    Dir.chdir(work) { Gem::Package.build(spec, true, false, File.join(directory, spec.file_name)) }
  end
end

mirror = File.expand_path(ARGV.shift)
gems = File.join(mirror, "gems")
FileUtils.mkdir_p(gems)
closure(ARGV).reject(&:default_gem?).each { |spec| build(spec, gems) }
Gem::Indexer.new(mirror).generate_index
