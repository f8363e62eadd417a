# Fetches URLs politely: asks the service for a turn, fetches, and tells the service how the site answered.
# Usage: ruby polite.rb URL …      POLITELY_URL and POLITELY_TOKEN say where the service is and who asks.
require "json"
require "net/http"

SERVICE = ENV.fetch("POLITELY_URL", "http://127.0.0.1:8787")
HOLD_MS = 600_000 # Longer than any page takes; a turn is free again after it, whatever became of who asked.

def send_to(uri, request, **how)
  Net::HTTP.start(uri.hostname, uri.port, use_ssl: uri.scheme == "https", **how) { |http| http.request(request) }
end

def ask(path, question)
  uri = URI(SERVICE + path)
  request = Net::HTTP::Post.new(uri, "Content-Type" => "application/json")
  request["Authorization"] = "Bearer #{ENV["POLITELY_TOKEN"]}" if ENV["POLITELY_TOKEN"]
  request.body = JSON.generate(question)
  answer = send_to(uri, request, read_timeout: nil) # A turn may be long in coming: the answer is held open until then.
  raise "#{path}: #{answer.body}" unless answer.is_a?(Net::HTTPSuccess)
  answer.body.to_s.empty? ? nil : JSON.parse(answer.body)
end

# Waits for the site's turn and gives its answer.
def polite_get(url)
  uri = URI(url) # What is no URL needs no turn.
  permit = ask("/v1/acquire", domain: url, ttlMs: HOLD_MS)["permit"]
  outcome = { outcome: "server_error" }
  answer = send_to(uri, Net::HTTP::Get.new(uri), max_retries: 0) # Another try would need a turn of its own.
  headers = answer.each_header.to_h { |name, value| [name, value.encode("UTF-8", "ISO-8859-1")] } # JSON takes no other bytes.
  outcome = { status: answer.code.to_i, headers: headers }
  answer
ensure
  begin
    ask("/v1/release", permit: permit, **outcome) if permit
  rescue => error # The page is there all the same.
    warn "not released #{url} #{error.message}"
  end
end

ARGV.each do |url|
  puts "#{polite_get(url).code} #{url}"
rescue => error # No turn, or no answer: the next one goes on.
  puts "failed #{url} #{error.message}"
end
