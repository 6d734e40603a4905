use Dancer2;
use DBI;
use File::Basename 'dirname';
use HTML::Entities 'encode_entities';

set template => 'tiny';
set views => dirname(__FILE__) . '/views';

my $address = "dbi:mysql:host=$ENV{DATABASE_SERVICE_NAME};database=$ENV{MYSQL_DATABASE}";

sub database {
    my $database = DBI->connect($address, $ENV{MYSQL_USER}, $ENV{MYSQL_PASSWORD}, { RaiseError => 1 });
    $database->do('CREATE TABLE IF NOT EXISTS articles (title TEXT)');
    return $database;
}

get '/health' => sub { 'ok' };

get '/' => sub {
    my $titles = database()->selectcol_arrayref('SELECT title FROM articles');
    template articles => { articles => [map { { title => encode_entities($_) } } @$titles] };
};

post '/' => sub {
    database()->do('INSERT INTO articles (title) VALUES (?)', undef, body_parameters->get('title'));
    redirect '/';
};

to_app;
